#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

// Words for messages and text forms. The engine builds its few strings with this instead of a
// formatting library: it compiles in no time, and libstrobe depends on nothing.
namespace strobe {

inline void append_text(std::string& out, std::string_view part) {
  out += part;
}

/// Numbers in their shortest form that reads back to the same value.
template <class Number>
requires(std::integral<Number> || std::floating_point<Number>) void append_text(std::string& out,
                                                                                Number value) {
  char digits[64];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end);
}

/// concat("is ", 3, ", allowed is ", 1, " to ", 2)
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

/// The elements with `separator` between them.
template <class Range>
std::string joined(const Range& elements, std::string_view separator) {
  std::string out;
  for (bool first = true; const auto& element : elements) {
    if (!first) out += separator;
    append_text(out, element);
    first = false;
  }
  return out;
}

}  // namespace strobe
