#include "report/record_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

std::string file_with(const std::string& text) {
  const std::string path = testing::TempDir() + "strobe_record_file_test." +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ofstream(path) << text;
  return path;
}

void expect_refusal(const std::string& path, const std::string& about) {
  try {
    read_records(path);
    FAIL() << "read " << path;
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(about), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
  }
}

TEST(RecordFile, ReadsEveryLineInOrder) {
  const auto records = read_records(file_with(R"({"schema":1,"pass":"forward"}

{"schema":1,"pass":"backward"})"));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1]["pass"], "backward");
  EXPECT_TRUE(read_records(file_with("")).empty());
}

TEST(RecordFile, NamesTheFileAndTheLineThatIsWrong) {
  expect_refusal(file_with("{\"schema\":1}\n{\"schema\":1,\"pa"), "line 2: is not a whole JSON");
  expect_refusal(file_with("[1, 2]\n"), "line 1: is not a record");
  expect_refusal(file_with("{\"schema\":\"1\"}\n"), "line 1: is not a record");
  expect_refusal(file_with("\n{\"schema\":99}\n"), "line 2: has schema 99");
}

TEST(RecordFile, SaysWhyAFileCannotBeRead) {
  expect_refusal(testing::TempDir() + "no/such/file", "No such file");
  expect_refusal(testing::TempDir(), "it is a folder");
}

}  // namespace
}  // namespace strobe::lab
