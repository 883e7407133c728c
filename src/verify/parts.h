#pragma once

#include <cstdint>
#include <functional>

namespace strobe::lab {

/// Calls visit(first, last) for parts that make up [0, count), by all cores where each has `least`
/// at least: below, a thread costs more than it saves.
void in_parts(std::int64_t count, std::int64_t least,
              const std::function<void(std::int64_t first, std::int64_t last)>& visit);

}  // namespace strobe::lab
