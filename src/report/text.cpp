#include "report/text.h"

#include <fmt/format.h>

namespace strobe::lab {

std::string bytes_text(std::int64_t bytes) {
  const auto amount = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.2f} GB", amount / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.1f} MB", amount / 1e6);
  if (bytes >= 1'000) return fmt::format("{:.1f} kB", amount / 1e3);
  return fmt::format("{} B", bytes);
}

std::string error_text(double error) {
  return error == 0 ? "0" : fmt::format("{:.2e}", error);
}

std::string tuning_text(const TuningRecord& tuning) {
  std::string text;
  for (const auto& [key, value] : tuning) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", key, value);
  }
  return text;
}

std::string reason_text(const std::string& implementation, const std::string& reason) {
  if (reason.starts_with(implementation + " ")) return reason;
  return fmt::format("{}: {}", implementation, reason);
}

}  // namespace strobe::lab
