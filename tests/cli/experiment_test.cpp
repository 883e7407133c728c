#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"

namespace strobe::test {
namespace {

using nlohmann::json;

/// One sentence on the standard error, nothing on the standard output.
void expect_experiment_refusal(const std::string& arguments, int status,
                               std::initializer_list<const char*> words) {
  const Outcome outcome = strobe("experiment " + arguments);
  EXPECT_EQ(outcome.status, status) << arguments << ": " << outcome.err;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  for (const char* word : words) EXPECT_TRUE(contains(outcome.err, word)) << outcome.err;
}

TEST(Experiment, ListsWhatThereIs) {
  const Outcome flag = strobe("experiment --list"), word = strobe("experiment list");
  EXPECT_EQ(flag.status, 0) << flag.err;
  EXPECT_EQ(flag.out, word.out);
  for (const char* name :
       {"fusion", "alignment", "accumulation", "io-model", "memory", "recompute", "occupancy"})
    EXPECT_TRUE(contains(flag.out, name)) << flag.out;
}

TEST(Experiment, LeavesAFolderWithSummaryRecordsAndPicture) {
  const std::string folder = fresh_path("folder"), file = fresh_path("records");
  const Outcome outcome =
      strobe("experiment fusion --quick --repeats 1 --problem 'sq64 h2 d16 fp32' --out " + folder +
             " --json " + file);
  EXPECT_TRUE(outcome.status == 0 || outcome.status == 1) << outcome.err;
  for (const char* part : {"Expected: ", "rule: ", "seen: ", "Why: ", "sq64 h2 d16 fp32"})
    EXPECT_TRUE(contains(outcome.out, part)) << outcome.out;
  const auto in_folder = [&](const char* name) { return read_file(folder + "/" + name); };
  EXPECT_TRUE(contains(outcome.out, in_folder("summary.txt")));
  EXPECT_TRUE(contains(in_folder("fusion.svg"), "</svg>"));
  EXPECT_EQ(read_file(file), in_folder("records.jsonl") + in_folder("results.jsonl"));
  const json record = json::parse(in_folder("results.jsonl"));
  EXPECT_EQ(record["experiment"], "fusion");
  EXPECT_EQ(strobe("report " + folder + "/records.jsonl -o " + fresh_path("page")).status, 0);
}

TEST(Experiment, FailsIfSomethingExpectedDidNotHold) {
  const Outcome outcome = strobe("experiment accumulation --quick --seqlen-k 4 --headdim 8 --out " +
                                 fresh_path("folder"));
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "did not hold")) << outcome.out;
}

TEST(Experiment, ErrorsSayWhatIsAllowed) {
  expect_experiment_refusal("", 2, {"needs a name", "--list"});
  expect_experiment_refusal("nothing", 2, {"'nothing'", "fusion", "--list"});
  expect_experiment_refusal("fusion --memory-limit lots", 2, {"--memory-limit", "'lots'", "GB"});
  expect_experiment_refusal("fusion --memory-limit -1GB", 2, {"--memory-limit", "'-1GB'"});
  expect_experiment_refusal("fusion --memory-limit 10kB", 3, {"10.0 kB", "--memory-limit"});
  expect_experiment_refusal("fusion --headdim 0", 2, {"--headdim"});
  expect_experiment_refusal("fusion --device cuda:x", 2, {"--device"});
}

TEST(Experiment, ReplacesNothingUnlessAsked) {
  const std::string folder = fresh_path("folder");
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/summary.txt") << "precious\n";
  expect_experiment_refusal("accumulation --quick --out " + folder, 2,
                            {"exists already", "--force"});
  EXPECT_EQ(read_file(folder + "/summary.txt"), "precious\n");
  expect_experiment_refusal(
      "accumulation --quick --force --json " + folder + "/results.jsonl --out " + folder + "/", 2,
      {"--json", "--out"});
  const Outcome outcome = strobe("experiment accumulation --quick --force --out " + folder);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(read_file(folder + "/summary.txt"), "accumulation: "));
}

TEST(Experiment, RecordsAndFolderKeepApart) {
  const std::string folder = fresh_path("folder");
  for (const std::string& spelled :
       {folder, folder + "/", folder + "/../" + folder.substr(folder.rfind('/') + 1)}) {
    expect_experiment_refusal("accumulation --quick --out " + folder + " --json " + spelled, 2,
                              {"--json", "--out"});
    EXPECT_FALSE(std::filesystem::exists(folder));
  }
  const Outcome outcome = shell(
      "strobe experiment accumulation --quick --out . --force --json - && test -f results.jsonl");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(lines(outcome.out).at(0)["experiment"], "accumulation");
}

TEST(Experiment, CompilesWithoutAGpu) {
  const std::string folder = fresh_path("folder");
  const Outcome outcome = strobe("experiment occupancy --quick --arch sm_80 --out " + folder);
  if (outcome.status == 3 && contains(outcome.err, "NVRTC")) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"Registers", "Spilled", "Occupancy", "d128", "sm_80", "undecided"})
    EXPECT_TRUE(contains(outcome.out, part)) << outcome.out;
  EXPECT_FALSE(std::filesystem::exists(folder + "/records.jsonl")) << "nothing was timed";
  EXPECT_TRUE(contains(read_file(folder + "/occupancy.svg"), "</svg>"));
  expect_experiment_refusal("occupancy --arch sm_75 --out " + fresh_path("old"), 2,
                            {"sm_75", "sm_80"});
}

}  // namespace
}  // namespace strobe::test
