#include "report/record_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

std::string path() {
  return testing::TempDir() + "strobe_record_log_test." +
         testing::UnitTest::GetInstance()->current_test_info()->name();
}

void put(const std::string& text) {
  std::ofstream(path()) << text;
}

std::string content() {
  std::ostringstream text;
  text << std::ifstream(path()).rdbuf();
  return text.str();
}

json log_record(const std::string& implementation, const std::string& problem = "s8",
                int threads = 2) {
  return {{"schema", 1},
          {"implementation", implementation},
          {"problem", problem},
          {"machine", {{"cpu", "a \"chip\"\n"}, {"isa", "avx2"}, {"threads", threads}}}};
}

/// A fresh file with these records.
std::string written(const std::vector<json>& records) {
  std::filesystem::remove(path());
  RecordLog log(path(), false);
  for (const json& each : records) log.append(each);
  return content();
}

TEST(RecordLog, GivesBackWhatWasAppended) {
  const std::vector records{log_record("flash"), log_record("standard")};
  const std::string text = written(records);
  EXPECT_EQ(text.rfind("{\"schema\":1,", 0), 0u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  RecordLog log(path(), false);
  EXPECT_EQ(log.records(), records);
  EXPECT_EQ(log.torn_bytes(), 0u);
  log.append(log_record("oracle"));
  EXPECT_EQ(content().rfind(text, 0), 0u) << "what is there is never rewritten";
}

TEST(RecordLog, ATornLastLineIsCutOffWhereverItWasTorn) {
  const std::string first = written({log_record("flash")});
  const std::string both = written({log_record("flash"), log_record("standard")});
  for (std::size_t size = first.size(); size < both.size(); ++size) {
    put(both.substr(0, size));
    const bool only_the_end_is_missing = size + 1 == both.size();
    {
      RecordLog log(path(), false);
      ASSERT_EQ(log.records().size(), only_the_end_is_missing ? 2u : 1u) << size;
      EXPECT_EQ(log.torn_bytes(), only_the_end_is_missing ? 0 : size - first.size());
      EXPECT_EQ(content(), both.substr(0, size)) << "reading changes nothing";
      if (!only_the_end_is_missing) log.append(log_record("standard"));
      log.append(log_record("oracle"));
    }
    RecordLog log(path(), false);
    ASSERT_EQ(log.records().size(), 3u) << size;
    EXPECT_EQ(log.records()[2]["implementation"], "oracle");
    EXPECT_EQ(content().rfind(both, 0), 0u) << size;
  }
}

TEST(RecordLog, TheOnlyLineMayBeTornToo) {
  const std::string whole = written({log_record("flash")});
  for (std::size_t size = 1; size + 1 < whole.size(); ++size) {
    put(whole.substr(0, size));
    RecordLog log(path(), false);
    EXPECT_TRUE(log.records().empty());
    log.append(log_record("flash"));
    EXPECT_EQ(content(), whole) << size;
  }
}

void expect_refusal_of_log(const std::string& text, const std::string& about) {
  put(text);
  try {
    const RecordLog log(path(), false);
    FAIL() << "took " << text;
  } catch (const InvalidArgument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find(about), std::string::npos) << what;
    EXPECT_NE(what.find(path()), std::string::npos) << what;
    EXPECT_NE(what.find("--force"), std::string::npos) << what;
  }
  EXPECT_EQ(content(), text);
}

TEST(RecordLog, RefusesWhatItDidNotWrite) {
  expect_refusal_of_log("precious\n", "line 1");
  expect_refusal_of_log("precious", "'precious'");
  expect_refusal_of_log("{\"name\": \"somebody's\"}", "line 1: is not a record");
  expect_refusal_of_log("{\"name\": \"some", "beginning of a record");
  expect_refusal_of_log("{\"schema\":1}\n{\"schema\":1,\"pa\n{\"schema\":1}\n",
                        "line 2: is not a whole");
  expect_refusal_of_log("{\"schema\":99}\n", "schema 99");
}

TEST(RecordLog, ReplacesEverythingOnRequestWithTheFirstRecord) {
  put("precious\n");
  RecordLog log(path(), true);
  EXPECT_EQ(content(), "precious\n") << "work that fails destroys nothing";
  log.append(log_record("flash"));
  log.append(log_record("standard"));
  EXPECT_EQ(content().rfind("{\"schema\":1,", 0), 0u);
  EXPECT_EQ(content().find("precious"), std::string::npos);
}

TEST(RecordLog, BelongsToOneAtATime) {
  std::filesystem::remove(path());
  auto log = std::make_unique<RecordLog>(path(), false);
  EXPECT_THROW(RecordLog(path(), false), InvalidArgument);
  EXPECT_THROW(RecordLog(path(), true), InvalidArgument);
  log.reset();
  EXPECT_NO_THROW(RecordLog(path(), false));
}

TEST(RecordLog, SaysWhyAFileWillNotDo) {
  EXPECT_THROW(RecordLog("/no/such/folder/file", false), InvalidArgument);
  EXPECT_THROW(RecordLog("/dev/null", false), InvalidArgument);
  EXPECT_THROW(RecordLog(testing::TempDir(), false), InvalidArgument);
}

TEST(Progression, FindsWhatIsDoneAndWhatDoesNotBelong) {
  const auto key = [](const json& r) { return key_of(r); };
  const std::vector wanted{key(log_record("flash", "s8")), key(log_record("standard", "s8")),
                           key(log_record("flash", "s16"))};
  const std::vector some{log_record("flash", "s16"), log_record("flash", "s8"),
                         log_record("flash", "s16")};
  const Progression partly = progression(wanted, some);
  EXPECT_EQ(partly.done, (std::vector<std::optional<std::size_t>>{1, std::nullopt, 0}));
  EXPECT_FALSE(partly.stranger);
  EXPECT_EQ(progression(wanted, {}).done.size(), 3u);
  for (const json& other :
       {log_record("oracle", "s8"), log_record("flash", "s8 bwd"), log_record("flash", "s8", 4),
        json{{"schema", 1}}, json{{"schema", 1}, {"problem", 3}, {"machine", "none"}}}) {
    const std::vector records{log_record("flash", "s8"), other};
    EXPECT_EQ(progression(wanted, records).stranger, 1u) << other;
  }
}

}  // namespace
}  // namespace strobe::lab
