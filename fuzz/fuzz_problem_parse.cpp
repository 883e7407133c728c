// Any text is a problem or an InvalidArgument, and a problem survives being printed and read back.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "check.h"
#include "strobe/error.h"
#include "strobe/problem.h"

namespace {

std::optional<strobe::Problem> parse(std::string_view text) {
  try {
    return strobe::Problem::parse(text);
  } catch (const strobe::InvalidArgument& error) {
    check(!error.field().empty(), "an InvalidArgument names its field");
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto problem = parse({reinterpret_cast<const char*>(data), size});
  if (!problem) return 0;
  const std::string text = problem->text();
  check(parse(text) == problem, "parse(text()) gives the same problem:", text.c_str());
  return 0;
}
