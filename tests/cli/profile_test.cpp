// Traces and profiles: the files that they leave, and what stays as it was.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "report/trace_format.h"

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

}  // namespace
}  // namespace strobe::test
