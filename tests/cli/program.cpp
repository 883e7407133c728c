#include "cli/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace strobe::test {

std::string fresh_path(const std::string& name) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string file = std::string(info->test_suite_name()) + "." + info->name() + "." + name;
  std::replace(file.begin(), file.end(), '/', '.');  // of a parameterised test
  const std::string path = testing::TempDir() + "strobe_cli_test." + file;
  std::filesystem::remove_all(path);
  return path;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<nlohmann::json> lines(const std::string& text) {
  std::vector<nlohmann::json> records;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    records.push_back(nlohmann::json::parse(line));
  }
  return records;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

namespace {

Outcome run(const std::string& command) {
  const std::string out = fresh_path("out"), err = fresh_path("err");
  const int status = std::system((command + " >" + out + " 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
}

}  // namespace

Outcome strobe(const std::string& arguments) {
  return run(std::string(STROBE_PROGRAM) + " " + arguments);
}

Outcome shell(const std::string& command) {
  const std::string folder = fresh_path("folder");
  std::filesystem::create_directory(folder);
  const std::string programs = std::filesystem::path(STROBE_PROGRAM).parent_path();
  Outcome outcome = run("(cd '" + folder + "' && export STROBE_DATA_DIR=. PATH='" + programs +
                        "':\"$PATH\" && " + command + ")");
  std::filesystem::remove_all(folder);
  return outcome;
}

}  // namespace strobe::test
