#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/program.h"

namespace strobe::test {
namespace {

constexpr const char* kRecord =
    R"({"schema":1,"implementation":"flash","problem":"b1 sq8 h1 d64 fp32","ms":{"p50":2.5}})";

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = fresh_path(name);
  std::ofstream(path) << text;
  return path;
}

void expect_report_refusal(const std::string& arguments, const std::string& about) {
  const Outcome outcome = strobe("report " + arguments);
  EXPECT_EQ(outcome.status, 2) << arguments;
  EXPECT_TRUE(contains(outcome.err, about)) << arguments << ": " << outcome.err;
}

TEST(Report, WritesOnePageOfAllRecords) {
  const std::string first = file_with("first", kRecord);
  const std::string second = file_with("second", R"({"schema":1,"implementation":"standard"})");
  const std::string page = fresh_path("page.html");
  const Outcome outcome =
      strobe("report " + first + " " + second + " --title 'A < B' --output " + page);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, page)) << outcome.out;
  const std::string html = read_file(page);
  for (const char* part : {"<!DOCTYPE html>", "A &lt; B", "\"flash\"", "\"standard\""}) {
    EXPECT_TRUE(contains(html, part)) << part;
  }
}

TEST(Report, PassesOverRecordsThatAreNoResults) {
  const std::string records = fresh_path("records"), page = fresh_path("page.html");
  strobe("experiment fusion --quick --repeats 1 --problem 'sq64 h2 d16 fp32' --out " +
         fresh_path("folder") + " --json " + records);  // whatever it concludes of the times
  EXPECT_TRUE(contains(read_file(records), "\"kind\":\"experiment\""));
  const Outcome outcome = strobe("report " + records + " -o " + page);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_FALSE(contains(read_file(page), "\"kind\":\"experiment"));
  EXPECT_TRUE(contains(read_file(page), "\"implementation\":\"flash\""));
}

class OtherRecords : public testing::TestWithParam<const char*> {};

TEST_P(OtherRecords, HaveASchemaAndAKind) {
  const Outcome outcome = strobe(GetParam() + std::string(" --json -"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto records = lines(outcome.out);
  ASSERT_FALSE(records.empty());
  for (const nlohmann::json& record : records) {
    EXPECT_EQ(record.value("schema", 0), 1) << record;
    EXPECT_NE(record.value("kind", ""), "") << record;
  }
  expect_report_refusal(file_with("records", outcome.out) + " -o " + fresh_path("page.html"),
                        "there is no result in");
}

INSTANTIATE_TEST_SUITE_P(Report, OtherRecords,
                         testing::Values("info",
                                         "tune --list --arch sm_90a --problem 's64 d64 bf16'",
                                         "watch --problem 's8 d8 fp32' --rounds 1 --every 0.01"));

TEST(Report, RefusesAnExistingPageUnlessForced) {
  const std::string records = file_with("records", kRecord);
  const std::string page = file_with("page.html", "precious");
  expect_report_refusal(records + " -o " + page, "strobe: -o");
  expect_report_refusal(records + " -o " + page, "--force");
  EXPECT_EQ(read_file(page), "precious");
  EXPECT_EQ(strobe("report " + records + " --force -o " + page).status, 0);
  EXPECT_TRUE(contains(read_file(page), "flash"));
}

TEST(Report, DestroysNothingWhenItFails) {
  const std::string page = file_with("page.html", "precious");
  const std::string broken = file_with("broken", std::string(kRecord) + "\n{\"sche");
  expect_report_refusal(broken + " --force -o " + page, "line 2");
  EXPECT_EQ(read_file(page), "precious");
  const std::string records = file_with("records", kRecord);
  expect_report_refusal(records + " --force -o " + records, "one of the records");
  EXPECT_EQ(read_file(records), kRecord);
  expect_report_refusal(records + " --force -o /dev/null", "is not a file");
}

TEST(Report, SaysWhatIsMissing) {
  const std::string page = fresh_path("page.html");
  expect_report_refusal("-o " + page, "RECORDS");
  expect_report_refusal(file_with("records", kRecord), "--output");
  expect_report_refusal(file_with("empty", "\n") + " -o " + page, "there is no result in");
  expect_report_refusal("/nowhere/at/all -o " + page, "/nowhere/at/all");
  expect_report_refusal(file_with("records", kRecord) + " -o /nowhere/page.html",
                        "/nowhere/page.html");
  EXPECT_FALSE(std::filesystem::exists(page));
}

}  // namespace
}  // namespace strobe::test
