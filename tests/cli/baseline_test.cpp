#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/own_implementation.h"
#include "cli/program.h"

namespace strobe::test {
namespace {

using nlohmann::json;

/// A folder of baselines of the test's own.
class Baseline : public testing::Test {
 protected:
  Baseline() : folder_(fresh_path("baselines")) {}

  Outcome baseline(const std::string& arguments) {
    return strobe("baseline " + arguments + " --dir " + folder_);
  }

  std::string file(const std::string& name) const { return folder_ + "/" + name + ".jsonl"; }

  /// Rewrites every record of a baseline.
  template <class Edit>
  void edit(const std::string& name, const Edit& change) {
    std::istringstream lines(read_file(file(name)));
    std::ofstream out(file(name));
    for (std::string line; std::getline(lines, line);) {
      json record = json::parse(line);
      change(record);
      out << record.dump() << '\n';
    }
  }

  void expect_refusal(const std::string& arguments, const std::string& about) {
    const Outcome outcome = baseline(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_TRUE(contains(outcome.err, about)) << outcome.err;
  }

  static constexpr const char* kSave =
      "save mine --problem 'b1 s64 h2 d16 fp32' --problem 'b1 s64 h2 d16 fp32 bwd' --repeats 16";

  std::string folder_;
};

TEST_F(Baseline, SavesRecordsAndChecksAgainstThem) {
  const Outcome saved = baseline(kSave);
  ASSERT_EQ(saved.status, 0) << saved.err;
  EXPECT_TRUE(contains(saved.out, "Saved 2 records as 'mine'")) << saved.out;
  // Against times that any machine keeps, and against times that none does.
  const auto scale = [](double factor) {
    return [factor](json& record) {
      for (json& sample : record["samples"]) sample = sample.get<double>() * factor;
    };
  };
  edit("mine", scale(1e3));
  const Outcome fine = baseline("check mine --records-only");
  EXPECT_EQ(fine.status, 0) << fine.out << fine.err;
  EXPECT_TRUE(contains(fine.out, "No regression")) << fine.out;
  edit("mine", scale(1e-6));
  const Outcome slow = baseline("check mine --records-only --json -");
  EXPECT_EQ(slow.status, 1) << slow.out << slow.err;
  EXPECT_TRUE(contains(slow.err, "2 of 2 regressed. Worst: flash on b1 sq64 h2 d16 fp32"))
      << slow.err;
  const std::string record = slow.out.substr(0, slow.out.find('\n'));
  EXPECT_EQ(json::parse(record)["samples"].size(), 16u) << "measured as the baseline was";
}

TEST_F(Baseline, KeepsTheLibraryAndTimesItInTurns) {
  ASSERT_EQ(baseline(kSave).status, 0);
  ASSERT_TRUE(std::filesystem::exists(folder_ + "/mine.libstrobe.so"));
  edit("mine", [](json& record) {
    for (json& sample : record["samples"]) sample = 1e-9;  // nobody is as fast as that
  });
  const Outcome in_turns = baseline("check mine --threshold 500");
  EXPECT_EQ(in_turns.status, 0) << in_turns.out;
  EXPECT_TRUE(contains(in_turns.out, "Saved build (ms)")) << in_turns.out;
  std::filesystem::remove(folder_ + "/mine.libstrobe.so");
  const Outcome alone = baseline("check mine");
  EXPECT_EQ(alone.status, 1) << alone.out;
  EXPECT_TRUE(contains(alone.err, "compared with the saved times alone")) << alone.err;
  std::ofstream(folder_ + "/mine.libstrobe.so") << "no library";
  EXPECT_TRUE(contains(baseline("check mine").err, "cannot be loaded"));
}

TEST_F(Baseline, JudgesByRecordsWhatTheSavedBuildDoesNotHave) {
  for (const bool guest : {true, false}) {
    const std::string name = guest ? "visitor" : "novel";
    add_own_implementation(name, compute_by_oracle, {.guest = guest});
    const auto baseline = [this](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), "baseline");
      arguments.insert(arguments.end(), {"--dir", folder_});
      return run_here(arguments);
    };
    ASSERT_EQ(baseline({"save", name, "--impl", name + ",flash", "--problem", "b1 s64 h2 d16 fp32",
                        "--repeats", "16"})
                  .status,
              0);
    // In the folder of a program that has the engine within itself there is none.
    std::filesystem::copy_file(STROBE_LIBRARY, folder_ + "/" + name + ".libstrobe.so");
    edit(name, [](json& record) {
      for (json& sample : record["samples"]) sample = 1e-9;  // nobody is as fast as that
    });
    const Outcome checked = baseline({"check", name, "--threshold", "500"});
    EXPECT_EQ(checked.status, 1) << checked.out << checked.err;
    EXPECT_TRUE(contains(checked.out, "1 of 2 regressed. Worst: " + name)) << checked.out;
    EXPECT_TRUE(contains(
        checked.out, name + " is compared with its saved times alone, because " +
                         (guest ? "no saved build has it." : "that of the saved build failed: ")))
        << checked.out;
    EXPECT_TRUE(contains(checked.out, "  Then (ms)")) << checked.out;
  }
}

TEST_F(Baseline, JudgesByRecordsWhatRunsOnAGpu) {
  const std::string on_gpu = "export STROBE_CUDA_DRIVER=" STROBE_FAKE_GPU "; strobe baseline ";
  const std::string where = " mine --dir " + folder_;
  const Outcome saved =
      shell(on_gpu + "save" + where + " --problem 'b1 s64 h2 d16 fp32' --repeats 16");
  ASSERT_EQ(saved.status, 0) << saved.err;
  edit("mine", [](json& record) { record["implementation"] = "cuda:flash"; });
  const Outcome checked = shell(on_gpu + "check" + where);
  EXPECT_TRUE(contains(checked.out,
                       "cuda:flash is compared with its saved times alone, because "
                       "saved builds are timed on the CPU only."))
      << checked.out << checked.err;
}

TEST_F(Baseline, MeasuresEachDeviceFromTheCachesOfItsRecords) {
  const std::string on_gpu = "export STROBE_CUDA_DRIVER=" STROBE_FAKE_GPU "; strobe baseline ";
  const std::string where = " mine --dir " + folder_;
  const Outcome saved = shell(on_gpu + "save" + where +
                              " --problem 'b1 s64 h2 d16 fp32' --impl flash,standard --repeats 16");
  ASSERT_EQ(saved.status, 0) << saved.err;
  edit("mine", [](json& record) {
    if (record["implementation"] == "standard") return;
    record["implementation"] = "cuda:flash";
    record["device"] = "cuda:0";
    record["sampling"]["cache"] = "cold";
  });
  for (const char* cpu_cache : {"warm", "cold"}) {
    edit("mine", [&](json& record) {
      if (record["device"] == "cpu") record["sampling"]["cache"] = cpu_cache;
    });
    const Outcome checked = shell(on_gpu + "check --json -" + where);
    const auto records = lines(checked.out);
    ASSERT_EQ(records.size(), 2u) << checked.err;
    EXPECT_EQ(records[0]["sampling"]["cache"], "cold") << records[0];
    EXPECT_EQ(records[1]["sampling"]["cache"], cpu_cache) << records[1];
  }
}

TEST_F(Baseline, IsNotReplacedUnlessForced) {
  ASSERT_EQ(baseline(kSave).status, 0);
  const std::string before = read_file(file("mine"));
  expect_refusal(kSave, "--force");
  EXPECT_EQ(read_file(file("mine")), before);
  EXPECT_EQ(baseline(std::string(kSave) + " --force").status, 0);
  EXPECT_NE(read_file(file("mine")), before);
}

TEST_F(Baseline, RefusesAnotherMachineUnlessTold) {
  ASSERT_EQ(baseline(kSave).status, 0);
  edit("mine", [](json& record) {
    record["machine"]["cpu"] = "Z80";
    for (json& sample : record["samples"]) sample = 1e6;
  });
  expect_refusal("check mine", "Z80");
  EXPECT_EQ(baseline("check mine --other-machine").status, 0);
}

TEST_F(Baseline, SaysWhatIsWrongWithAFile) {
  expect_refusal("check nobody", "nobody.jsonl' cannot be read");
  expect_refusal("check ../mine", "NAME is '../mine'");
  std::filesystem::create_directories(folder_);
  std::ofstream(file("empty")) << "";
  expect_refusal("check empty", "without a record");
  std::ofstream(file("cut")) << R"({"schema":1,"implementation":"fla)";
  expect_refusal("check cut", "line 1: is not a whole JSON object");
  std::ofstream(file("bare")) << R"({"schema":1})" << '\n';
  expect_refusal("check bare", "lack something");
  expect_refusal("save x --impl nobody", "flash, standard, oracle");
  expect_refusal("save x --seqlen -4", "--seqlen is '-4'");
}

TEST_F(Baseline, KeepsNothingThatCouldNotBeMeasured) {
  const Outcome outcome = baseline("save mine --problem 's8 int8'");
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "nothing is saved")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(file("mine")));
}

}  // namespace
}  // namespace strobe::test
