#include "verify/parts.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace strobe::lab {

void in_parts(std::int64_t count, std::int64_t least,
              const std::function<void(std::int64_t first, std::int64_t last)>& visit) {
  const auto cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const std::int64_t parts =
      std::clamp<std::int64_t>(count / std::max<std::int64_t>(least, 1), 1, cores);
  std::vector<std::jthread> threads;
  for (std::int64_t part = 1; part < parts; ++part) {
    threads.emplace_back([&, part] { visit(count * part / parts, count * (part + 1) / parts); });
  }
  visit(0, count / parts);
}

}  // namespace strobe::lab
