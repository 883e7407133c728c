#include "cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "strobe/registry.h"

namespace strobe::cli {

std::vector<const Implementation*> find_implementations(const std::vector<std::string>& names) {
  std::vector<const Implementation*> found;
  for (const std::string& name : names) found.push_back(&Registry::instance().find(name));
  return found;
}

Progress::Progress(std::size_t total) : total_(total), visible_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(std::size_t done, const std::string& what) {
  if (!visible_) return;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  std::string left;
  if (done > 0) {
    const double seconds =
        spent.count() / static_cast<double>(done) * static_cast<double>(total_ - done);
    left = fmt::format(", {:.0f} s left", seconds);
  }
  fmt::print(stderr, "\r\x1b[K[{}/{}{}] {:.70}", done + 1, total_, left, what);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

}  // namespace strobe::cli
