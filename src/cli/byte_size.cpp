#include "cli/byte_size.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "strobe/error.h"

namespace strobe::cli {
namespace {

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"", 1}, {"B", 1}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};

}  // namespace

std::int64_t parse_byte_size(const std::string& option, const std::string& text) {
  constexpr double kMost = 1e18;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  while (*end == ' ') ++end;
  const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                 [end](const auto& each) { return each.first == end; });
  const double bytes = unit != std::end(kUnits) ? number * unit->second : 0;
  if (bytes >= 1 && bytes <= kMost) return static_cast<std::int64_t>(bytes);
  throw InvalidArgument(option, fmt::format("is '{}', allowed is a number of bytes from 1 on, with "
                                            "kB, MB, GB or TB behind it if you like",
                                            text));
}

void add_byte_size(CLI::App& command, const std::string& option, std::int64_t& bytes,
                   const std::string& help) {
  command
      .add_option_function<std::string>(
          option,
          [&bytes, option](const std::string& text) { bytes = parse_byte_size(option, text); },
          help)
      ->type_name("BYTES");
}

}  // namespace strobe::cli
