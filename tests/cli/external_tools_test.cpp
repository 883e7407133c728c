// nsys and ncu around the program, played by scripts: what they leave, and what becomes of those
// that fail or never end.
#include "cli/external_tools.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/child_process.h"
#include "cli/program.h"
#include "support/environment.h"

namespace strobe::cli {
namespace {

using test::contains;
using test::fresh_path;
using test::ScopedVariable;

/// Never runs: the programs that would call it are not real either.
class OnAGpu final : public Implementation {
 public:
  std::string_view name() const override { return "flash"; }
  std::string_view summary() const override { return "for tests"; }
  Device::Kind device() const override { return Device::Kind::cuda; }
  Support supports(const Problem&, const PlanOptions&) const override { return {}; }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions&) const override {
    return {.problem = problem};
  }
  void execute(const Plan&, const Tensors&, void*, Stream) const override {}
};

/// A PATH with these programs and the system's.
class Programs {
 public:
  Programs() : folder_(fresh_path("bin")) { std::filesystem::create_directory(folder_); }

  void add(const std::string& name, const std::string& script) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  std::string path() const { return folder_ + ":/usr/bin:/bin"; }

 private:
  std::string folder_;
};

/// Leave what they are told to leave, with the command that they were to watch in it.
constexpr const char* kNsys =
    "if [ $1 = stats ]; then echo 'kernel 1.5 ms'; exit; fi\n"
    "while [ $1 != --output ]; do shift; done\n"
    "echo \"$*\" > \"$2\"\n";
constexpr const char* kNcu =
    "if [ $1 = --import ]; then cat <<END\n"
    "[7] strobe@127.0.0.1\n"
    "  forward (132, 1, 1)x(384, 1, 1)\n"
    "    Section: Memory Workload Analysis\n"
    "    L2 Hit Rate % 90\n"
    "    Section: Compute Workload Analysis\n"
    "    Issue Slots % 40\n"
    "  backward (1, 1, 1)x(64, 1, 1)\n"
    "    Section: Occupancy\n"
    "    Achieved % 12\n"
    "END\n"
    "exit; fi\n"
    "while [ $1 != --export ]; do shift; done\n"
    "echo \"$*\" > \"$2\"\n";

BenchSubject subject() {
  static const OnAGpu implementation;
  return {.problem = Problem::parse("b2 s64 h2 d32 bf16 causal bwd"),
          .passes = {Pass::forward, Pass::backward},
          .implementation = &implementation};
}

TEST(ExternalTools, LeaveReportsOfTheSameProblem) {
  const Programs programs;
  programs.add("nsys", kNsys);
  programs.add("ncu", kNcu);
  programs.add("strobe", "exit 1\n");
  const ScopedVariable path("PATH", programs.path().c_str());
  BenchOptions options;
  options.run.tf32 = true;
  options.run.variant = "a variant";
  const ToolResults results = run_tools(options, subject());
  ASSERT_EQ(results.tools.size(), 2u);
  for (const lab::ExternalTool& tool : results.tools) EXPECT_EQ(tool.trouble, "") << tool.name;
  EXPECT_EQ(results.files.size(), tool_files().size());
  for (const std::string& name : tool_files()) EXPECT_TRUE(results.files.contains(name)) << name;
  const std::string& watched = results.files.at("flash_attn_ncu_full.ncu-rep");
  EXPECT_TRUE(contains(watched,
                       "/strobe bench --calls 1 --problem b2 sq64 h2 d32 bf16 causal "
                       "--impl cuda:flash --device cuda:0 --reference automatic --pass "
                       "both --tf32 --variant a variant"))
      << watched;
  EXPECT_EQ(results.files.at("nsys_stats.txt"), "kernel 1.5 ms\n");
  const std::string& memory = results.files.at("ncu_memory_metrics.txt");
  EXPECT_TRUE(contains(memory, "L2 Hit Rate % 90") && contains(memory, "  backward")) << memory;
  EXPECT_FALSE(contains(memory, "Issue Slots") || contains(memory, "Achieved")) << memory;
  const std::string& compute = results.files.at("ncu_compute_metrics.txt");
  EXPECT_TRUE(contains(compute, "Issue Slots % 40") && contains(compute, "Achieved % 12"));
  EXPECT_FALSE(contains(compute, "L2 Hit Rate")) << compute;
}

TEST(ExternalTools, ThatFailOrNeverEndAreSaidAndPassedOver) {
  const Programs programs;
  programs.add("nsys", "echo begins; echo '==ERROR== no permission'; echo ends; exit 7\n");
  programs.add("ncu", "sleep 60 & wait\n");
  programs.add("strobe", "exit 1\n");
  const ScopedVariable path("PATH", programs.path().c_str());
  const ScopedVariable limit("STROBE_TOOL_SECONDS", "0.2");
  const ToolResults results = run_tools({}, subject());
  EXPECT_TRUE(results.files.empty());
  EXPECT_TRUE(contains(results.tools[0].trouble,
                       "failed with status 7, \"==ERROR== no permission\": try `nsys profile"))
      << results.tools[0].trouble;
  EXPECT_TRUE(contains(results.tools[1].trouble, "was ended after 0.2 s"))
      << results.tools[1].trouble;
}

TEST(ExternalTools, ThatLeaveNothingAreSaidToo) {
  const Programs programs;
  programs.add("ncu", "echo '==WARNING== No kernels were profiled.'\n");
  programs.add("strobe", "exit 1\n");
  const ScopedVariable path("PATH", programs.path().c_str());
  const ToolResults results = run_tools({}, subject());
  EXPECT_EQ(results.tools[0].trouble, "not on the PATH here");
  EXPECT_TRUE(contains(results.tools[1].trouble, "left no report: \"==WARNING== No kernels"))
      << results.tools[1].trouble;
}

TEST(ChildProcess, IsToldApartByItsEnd) {
  EXPECT_EQ(run_child({"sh", "-c", "echo out; echo err >&2; exit 5"}, 60).output, "out\nerr\n");
  EXPECT_EQ(run_child({"sh", "-c", "exit 5"}, 60).status, 5);
  EXPECT_EQ(run_child({"sh", "-c", "kill -9 $$"}, 60).status, 128 + 9);
  EXPECT_EQ(run_child({"/nowhere/at/all"}, 60).status, -1);
  const ChildOutcome stubborn = run_child({"sh", "-c", "trap '' TERM; sleep 60 & wait; wait"}, 0.1);
  EXPECT_TRUE(stubborn.timed_out);
}

}  // namespace
}  // namespace strobe::cli
