#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace strobe::test {

/// What a finished run of the program left.
struct Outcome {
  int status = -1;
  std::string out{}, err{};
};

/// Runs the built program with these arguments, as a shell would read them.
Outcome strobe(const std::string& arguments);

/// Runs a command line as a user would type it who has the program on the path, in a folder of its
/// own.
Outcome shell(const std::string& command);

/// A path in the test's own folder where nothing is yet.
std::string fresh_path(const std::string& name);

/// The records that `--json -` wrote, one of each line.
std::vector<nlohmann::json> lines(const std::string& text);

std::string read_file(const std::string& path);

bool contains(const std::string& text, const std::string& part);

}  // namespace strobe::test
