#include "cuda/jit/architecture.h"

#include <charconv>

#include "core/text.h"
#include "cuda/driver/device.h"
#include "strobe/error.h"

namespace strobe::cuda::jit {
namespace {

constexpr int kOldest = 80;

}  // namespace

std::string Architecture::text() const {
  return concat("sm_", number(), specific ? "a" : "");
}

Architecture Architecture::parse(std::string_view text) {
  const auto refuse = [&] {
    throw InvalidArgument("architecture",
                          concat("is '", text,
                                 "', allowed is sm_80 and later: sm_80 (A100), sm_89 "
                                 "(RTX 4090), sm_90a (H100, H200), sm_120 (RTX 5090)"));
  };
  std::string_view digits = text;
  if (!digits.starts_with("sm_")) refuse();
  digits.remove_prefix(3);
  const bool specific = digits.ends_with('a');
  if (specific) digits.remove_suffix(1);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size() || number < kOldest) refuse();
  return {.major = number / 10, .minor = number % 10, .specific = specific};
}

Architecture Architecture::of(const driver::Device& device) {
  if (std::string older = missing(device); !older.empty())
    throw Unsupported(concat("cuda:", device.index()), {std::move(older)});
  const int major = device.capability_major();
  return {
      .major = major, .minor = device.capability_minor(), .specific = major == 9 || major == 10};
}

std::string Architecture::missing(const driver::Device& device) {
  const int major = device.capability_major(), minor = device.capability_minor();
  if (10 * major + minor >= kOldest) return {};
  return concat("compute capability 8.0, that of cuda:", device.index(), " (", device.name(),
                ") is ", major, ".", minor);
}

}  // namespace strobe::cuda::jit
