// Traces and profiles: the files that they leave, and what stays as it was.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/own_implementation.h"
#include "cli/program.h"
#include "report/trace_format.h"
#include "strobe/threads.h"

namespace strobe::test {
namespace {

using nlohmann::json;

constexpr const char* kSmall = "--batch 1 --seqlen 64 --nheads 2 --headdim 16 --repeats 2 ";

std::set<std::string> slice_names(const json& trace) {
  std::set<std::string> names;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") names.insert(event.at("name").get<std::string>());
  }
  return names;
}

TEST(BenchProfile, WritesATraceOfBothPasses) {
  const std::string path = fresh_path("trace");
  const Outcome outcome = strobe(std::string("bench ") + kSmall + "--profile " + path);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "Trace: " + path)) << outcome.out;
  const json trace = json::parse(read_file(path));
  expect_chrome_trace(trace);
  const std::set<std::string> names = slice_names(trace);
  for (const char* name : {"plan", "run", "execute", "forward pass", "backward pass", "first call",
                           "call", "flash forward", "flash backward"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(BenchProfile, IsNamedAfterTheProblem) {
  const std::string folder = fresh_path("traces");
  const Outcome outcome = shell("mkdir " + folder + " && cd " + folder + " && strobe bench " +
                                kSmall + "--no-grad --profile --causal");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string path = folder + "/trace_b1_sq64_h2_d16_fp32_causal.json";
  ASSERT_TRUE(std::filesystem::exists(path)) << outcome.out;
  EXPECT_FALSE(slice_names(json::parse(read_file(path))).contains("backward pass"));
}

TEST(BenchProfile, ReplacesAFileOnlyWhereAsked) {
  const std::string path = fresh_path("trace");
  std::ofstream(path) << "precious\n";
  const std::string command = std::string("bench ") + kSmall + "--no-grad --profile " + path;
  const Outcome refused = strobe(command);
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "--force")) << refused.err;
  EXPECT_EQ(read_file(path), "precious\n");
  const Outcome same = strobe(command + " --force --json " + path);
  EXPECT_EQ(same.status, 2);
  EXPECT_TRUE(contains(same.err, "--profile") && contains(same.err, "--json")) << same.err;
  EXPECT_EQ(read_file(path), "precious\n");
  EXPECT_EQ(strobe(command + " --force").status, 0);
  expect_chrome_trace(json::parse(read_file(path)));
}

TEST(BenchProfile, WorkThatFailsDestroysNothing) {
  const std::string path = fresh_path("trace");
  std::ofstream(path) << "precious\n";
  EXPECT_EQ(strobe("bench --problem 's8 int8' --force --profile " + path).status, 3);
  EXPECT_EQ(read_file(path), "precious\n");
  const Outcome nowhere = strobe(std::string("bench ") + kSmall + "--profile /nowhere/at/all");
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_TRUE(contains(nowhere.err, "/nowhere/at/all")) << nowhere.err;
}

const std::set<std::string> kFiles = {
    "SUMMARY.md",         "baseline_benchmark.txt", "comparison_results.txt", "gpu_info.txt",
    "kernel_summary.txt", "memory_metrics.txt",     "compute_metrics.txt",    "roofline.svg",
    "trace_forward.json", "trace_backward.json"};

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename());
  return names;
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
}

TEST(Profile, LeavesAFolderThatExplainsAProblem) {
  const std::string folder = fresh_path("profile");
  const Outcome outcome = strobe(std::string("profile ") + kSmall + "--out " + folder);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_parts(outcome.out, {"Verdict: ", "SUMMARY.md"});
  EXPECT_EQ(files_in(folder), kFiles);
  const auto file = [&](const char* name) { return read_file(folder + "/" + name); };
  expect_parts(file("SUMMARY.md"),
               {"# Profile of flash on b1 sq64 h2 d16 fp32", "TFLOP/s", "Of the measured peak",
                "Of the roofline", "Arithmetic intensity", "Threads busy", "## Verdict",
                "## Advice", "rule", "## Hardware counters", "nsys", "ncu"});
  expect_parts(file("baseline_benchmark.txt"), {"Forward Pass Results", "Backward Pass Results"});
  expect_parts(file("comparison_results.txt"), {"flash", "standard", "bwd", "Fastest: "});
  expect_parts(file("gpu_info.txt"), {"CPU", "GPU", "Peaks, measured"});
  expect_parts(file("kernel_summary.txt"), {"Calls", "Total (ms)", "Mean (ms)", "%",
                                            "flash forward", "flash backward", "execute"});
  expect_parts(file("memory_metrics.txt"), {"moved by a call", "GB/s", "measured copy"});
  expect_parts(file("compute_metrics.txt"), {"FLOPs of a call", "peak, measured", "Busy (ms)"});
  expect_parts(file("roofline.svg"), {"<svg ", "flash forward", "flash backward", "</svg>"});
  for (const char* trace : {"trace_forward.json", "trace_backward.json"})
    expect_chrome_trace(json::parse(file(trace)));
}

bool seen_pinned = false;

void compute_and_look(const Plan& plan, const Tensors& tensors) {
  seen_pinned = seen_pinned || threads_pinned();
  compute_by_oracle(plan, tensors);
}

TEST(Profile, ComparesAsItTimes) {
  add_own_implementation("looking", compute_and_look, {.guest = true});
  std::vector<std::string> arguments{
      "profile", "--impl",    "looking", "--problem", "b1 s64 h2 d16 fp32", "--no-grad",
      "--force", "--repeats", "2",       "--out",     fresh_path("profile")};
  ASSERT_EQ(run_here(arguments).status, 0);
  ASSERT_TRUE(seen_pinned);
  seen_pinned = false;
  arguments.emplace_back("--no-pin");
  ASSERT_EQ(run_here(arguments).status, 0);
  EXPECT_FALSE(seen_pinned) << "in the comparison, of which guests are a part";
}

TEST(Profile, ReplacesOnlyItsOwnFilesAndOnlyWhereAsked) {
  const std::string folder = fresh_path("profile");
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/SUMMARY.md") << "precious\n";
  std::ofstream(folder + "/mine.txt") << "mine\n";
  std::ofstream(folder + "/trace_backward.json") << "an earlier profile's\n";
  const std::string command = std::string("profile --no-grad ") + kSmall + "--out " + folder;
  const Outcome refused = strobe(command);
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "--force")) << refused.err;
  EXPECT_EQ(read_file(folder + "/SUMMARY.md"), "precious\n");
  EXPECT_EQ(files_in(folder).size(), 3u);
  EXPECT_EQ(strobe(command + " --force").status, 0);
  EXPECT_TRUE(contains(read_file(folder + "/SUMMARY.md"), "# Profile of flash"));
  EXPECT_EQ(read_file(folder + "/mine.txt"), "mine\n");
  EXPECT_FALSE(files_in(folder).contains("trace_backward.json")) << "of a pass that did not run";
}

TEST(Profile, WorkThatFailsLeavesNothing) {
  const std::string folder = fresh_path("profile");
  EXPECT_EQ(strobe("profile --problem 's8 int8' --out " + folder).status, 3);
  EXPECT_FALSE(std::filesystem::exists(folder));
  const std::string file = fresh_path("file");
  std::ofstream(file) << "precious\n";
  const Outcome outcome = strobe(std::string("profile ") + kSmall + "--force --out " + file);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(contains(outcome.err, "is not a folder")) << outcome.err;
  EXPECT_EQ(strobe(std::string("profile ") + kSmall + "--out /proc/nowhere").status, 2);
}

TEST(Profile, TakesSizesFromTheEnvironmentUnlessOptionsGiveThem) {
  const std::string folder = fresh_path("profile");
  const Outcome outcome = shell(
      "BATCH=3 SEQLEN=32 NHEADS=2 HEADDIM=8 strobe profile --no-grad --repeats 1 --seqlen 48 "
      "--out " +
      folder);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(read_file(folder + "/SUMMARY.md"), "b3 sq48 h2 d8 fp32"));
}

TEST(Profile, NamesTheVariableThatIsWrong) {
  for (const auto& [variable, word] : std::initializer_list<std::pair<const char*, const char*>>{
           {"BATCH=two", "BATCH is 'two', allowed is a whole number"},
           {"SEQLEN=-1", "SEQLEN is '-1'"},
           {"NHEADS=0", "NHEADS is '0'"},
           {"HEADDIM=513", "HEADDIM is 513"}}) {
    const Outcome outcome = shell(std::string(variable) + " strobe profile");
    EXPECT_EQ(outcome.status, 2) << variable;
    EXPECT_TRUE(contains(outcome.err, word)) << outcome.err;
  }
  EXPECT_EQ(shell("BATCH=two strobe profile --no-grad --repeats 1 --problem 's16 d8 fp32'").status,
            0)
      << "what is not used is not looked at";
}

}  // namespace
}  // namespace strobe::test
