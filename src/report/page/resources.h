#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace strobe::lab {

/// The files of src/report/page, and "chart.js", by name, as they were when the program was built.
/// Generated.
std::span<const std::pair<std::string_view, std::string_view>> page_resources();

/// One of them. Throws std::logic_error for any other name.
std::string_view page_resource(std::string_view name);

}  // namespace strobe::lab
