#include "measure/resident.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace strobe::lab {
namespace {

/// A line such as "VmHWM:   12345 kB".
std::optional<std::int64_t> status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kilobytes = 0;
    if (word == key && status >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

/// Lets the kernel's high-water mark begin anew from where the process stands.
bool reset_peak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return clear.good();
}

}  // namespace

std::optional<std::int64_t> resident_bytes() {
  return status_bytes("VmRSS:");
}

ResidentWatch::ResidentWatch() {
  if (reset_peak()) start_ = resident_bytes();
}

std::optional<std::int64_t> ResidentWatch::growth() const {
  const auto peak = status_bytes("VmHWM:");
  if (!start_ || !peak) return std::nullopt;
  return std::max<std::int64_t>(*peak - *start_, 0);
}

}  // namespace strobe::lab
