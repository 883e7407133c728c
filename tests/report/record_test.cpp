#include "report/record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "report/text.h"
#include "strobe/error.h"
#include "strobe/machine.h"
#include "strobe/registry.h"
#include "verify/verify.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

void expect_common(const json& record) {
  for (const char* field :
       {"schema", "implementation", "device", "problem", "fields", "pass", "plan", "status",
        "memory", "error", "machine", "commit", "command", "version", "time"}) {
    EXPECT_TRUE(record.contains(field)) << field;
  }
  const std::string problem = record["problem"];
  EXPECT_EQ(Problem::parse(problem).text(), problem);
  EXPECT_EQ(record["time"].get<std::string>().size(), std::string("2026-01-01T00:00:00Z").size());
}

TEST(Record, OfAVerification) {
  const Case what{Problem::parse("b2 sq9 h4 hk2 d8 fp16 causal bwd"), {.scale = 3, .seed = 5}};
  const json record = record_of(what, verify(what, Registry::instance().find("flash")));
  expect_common(record);
  EXPECT_EQ(record["implementation"], "flash");
  EXPECT_EQ(record["pass"], "backward");
  EXPECT_EQ(record["fields"]["heads_k"], 2);
  EXPECT_EQ(record["inputs"]["scale"], 3);
  EXPECT_EQ(record["error"]["rule"], "pass");
  for (const char* tensor : {"out", "lse", "dq", "dk", "dv"}) {
    EXPECT_EQ(record["error"][tensor]["rule"], "pass") << tensor;
  }
  EXPECT_EQ(record["error"]["max"], record["error"]["out"]["max"]);
}

TEST(Record, OfABenchmark) {
  Benchmark b;
  b.implementation = "flash";
  b.problem = Problem::parse("lq3,4 h1 d8 fp32");
  b.measurement.samples_ms = {1, 3, 2, 2, 2, 2};
  b.measurement.ms = summarize(b.measurement.samples_ms);
  b.policy.cache = Cache::cold;
  b.rivals = 1;
  b.flops = 4e9;
  b.memory = {.inputs = 1000, .outputs = 500, .workspace = 64, .resident = 100};
  b.accuracy = {.measured = true, .max_error = std::numeric_limits<double>::infinity()};
  const Peaks peaks{
      .threads = 2, .flops_per_second = {{DType::fp32, 4e12}}, .copy = {{1 << 20, 1e18}}};
  const json record = record_of(b, peaks);
  expect_common(record);
  EXPECT_EQ(record["tflops"]["p50"], 2);
  EXPECT_EQ(record["tflops"]["best"], 4);
  EXPECT_EQ(record["ms"]["ci95"], json({1, 3}));
  EXPECT_EQ(record["roofline"], 0.5);
  EXPECT_EQ(record["roof"]["bound"], "compute");
  EXPECT_EQ(record["roof"]["peak_tflops"], 4);
  EXPECT_EQ(record["samples"].size(), 6u);
  EXPECT_EQ(record["sampling"]["cache"], "cold");
  EXPECT_EQ(record["sampling"]["interleaved_with"], 1);
  EXPECT_EQ(record["memory"]["peak"], 1600) << "what was taken is more than what was planned";
  EXPECT_EQ(record["machine"]["threads"], 2);
  EXPECT_TRUE(record["error"]["max"].is_null()) << "JSON has no infinity";
  EXPECT_EQ(record["fields"]["lengths_q"], json({3, 4}));
}

TEST(Record, MoreThanThePeakSpeaksAgainstThePeak) {
  Benchmark b;
  b.implementation = "flash";
  b.problem = Problem::parse("s64 h1 d8 fp32");
  b.measurement.samples_ms = {2, 2, 2};
  b.measurement.ms = summarize(b.measurement.samples_ms);
  b.flops = 4e9;
  const auto of_peak = [&](double peak, double copy_rate) {
    return low_peak_text(b, {.threads = machine().cores,
                             .flops_per_second = {{DType::fp32, peak}},
                             .copy = {{1 << 20, copy_rate}}});
  };
  EXPECT_EQ(of_peak(1.96e12, 1e18), "") << "2 % may be chance";
  EXPECT_EQ(of_peak(1e12, 1e18),
            "flash reaches 200 % of the peak of cpu, which was measured when the machine was "
            "slower; strobe info --measure measures it again");
  EXPECT_EQ(of_peak(1e12, 1), "") << "caches may be faster than a copy";
  EXPECT_EQ(of_peak(0, 1e18), "") << "no peak is known";
}

TEST(Record, PeaksAreMeasuredAgainWithAsManyThreads) {
  const int usual = machine().cores;
  const Device gpu{Device::Kind::cuda, 0};
  EXPECT_EQ(measuring_command({.threads = usual}), "strobe info --measure");
  EXPECT_EQ(measuring_command({.threads = 1 + usual}),
            fmt::format("strobe info --measure --threads {}", 1 + usual));
  EXPECT_EQ(measuring_command({.device = gpu, .threads = 1 + usual}), "strobe info --measure");
}

TEST(Record, HasWhatAGpuToldOfItselfAndNothingElse) {
  Benchmark b;
  b.implementation = "cuda:x";
  b.device = Device{Device::Kind::cuda, 2};
  b.options.tf32 = true;
  b.problem = Problem::parse("s8 fp32");
  EXPECT_FALSE(record_of(b, {}).contains("device_state"));
  EXPECT_EQ(slowdown_text(b), "");
  b.measurement.device = {.before = DeviceState{},
                          .during = DeviceState{.clock_mhz = 1755, .power_w = 612.5},
                          .slowed_by = {"power cap", "heat"}};
  const json record = record_of(b, {});
  EXPECT_EQ(record["device"], "cuda:2");
  EXPECT_TRUE(record["options"]["tf32"]);
  EXPECT_EQ(record["device_state"], (json{{"during", {{"clock_mhz", 1755}, {"power_w", 612.5}}},
                                          {"slowed_by", {"power cap", "heat"}}}));
  EXPECT_EQ(state_text(*b.measurement.device.during), "1755 MHz, 612 W");
  EXPECT_EQ(slowdown_text(b),
            "cuda:2 kept its clocks down while cuda:x was timed: power cap, heat");
}

TEST(Record, OfWhatCouldNotRunSaysWhy) {
  Benchmark b;
  b.implementation = "x";
  b.problem = Problem::parse("s8 fp32");
  b.status = Status::out_of_memory;
  b.reason = "no room";
  const json record = record_of(b, {});
  EXPECT_EQ(record["status"], "out-of-memory");
  EXPECT_EQ(record["reason"], "no room");
  EXPECT_FALSE(record.contains("ms"));
}

/// As a user who is not root. Ends the process, with 2 if the path is refused.
[[noreturn]] void write_as_anybody(const std::string& path) {
  if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
  try {
    RecordWriter(path, true).write(json::object());
  } catch (const InvalidArgument&) {
    _exit(2);
  }
  _exit(0);
}

TEST(RecordWriter, AFileThatIsThereNeedsNoFolderThatCanBeWritten) {
  EXPECT_EXIT(write_as_anybody("/dev/null"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(write_as_anybody("/dev/strobe_record_test"), testing::ExitedWithCode(2), "");
}

}  // namespace
}  // namespace strobe::lab
