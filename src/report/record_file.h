#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace strobe::lab {

/// The records of a file that --json wrote, in its order; blank lines are passed over. Throws
/// InvalidArgument naming the file and the line where it is not a record of a known schema, and
/// for a file that cannot be read.
std::vector<nlohmann::json> read_records(const std::string& path);

/// The same of text that was read from there already.
std::vector<nlohmann::json> read_records(std::istream& text, const std::string& path);

}  // namespace strobe::lab
