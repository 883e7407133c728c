#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace strobe::cli {

/// "1500000", "64MB", "2 GB" or "1.5GB", in decimal units. Throws InvalidArgument naming the
/// option.
std::int64_t parse_byte_size(const std::string& option, const std::string& text);

/// An option that takes such a size.
void add_byte_size(CLI::App& command, const std::string& option, std::int64_t& bytes,
                   const std::string& help);

}  // namespace strobe::cli
