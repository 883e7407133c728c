// --device and what goes with it, on a GPU that is not real: its kernels do nothing.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace strobe::test {
namespace {

using nlohmann::json;

/// Runs the program where there are so many GPUs, with little or much memory.
Outcome on_gpus(int count, const std::string& command, const std::string& variables = "") {
  return shell("export STROBE_CUDA_DRIVER=" STROBE_FAKE_GPU " STROBE_FAKE_GPUS=" +
               std::to_string(count) + "; " + variables + " strobe " + command);
}

void expect_refusal(const Outcome& outcome, int status, std::initializer_list<const char*> words) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  for (const char* word : words) EXPECT_TRUE(contains(outcome.err, word)) << outcome.err;
}

/// Tests that plan on a GPU skip, and say why, where kernels cannot be compiled.
class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    const Outcome listed = on_gpus(1, "list --device cuda");
    if (contains(listed.out, "NVRTC")) GTEST_SKIP() << listed.out;
  }
};

TEST(DeviceOption, NamesWhatIsAllowed) {
  for (const char* wrong : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "tpu:0"}) {
    expect_refusal(strobe(std::string("bench --device ") + wrong), 2,
                   {"--device", wrong, "cpu, cuda or cuda:N", "strobe info"});
  }
}

TEST(DeviceOption, SaysWhyThereIsNoGpu) {
  for (const char* command : {"bench", "compare", "profile", "verify", "sweep --dry-run"}) {
    expect_refusal(shell("STROBE_CUDA_DRIVER=/no/such/driver.so strobe " + std::string(command) +
                         " --device cuda"),
                   3, {"--device", "no GPU can be used", "there is no NVIDIA driver"});
  }
}

TEST(DeviceOption, SaysWhichGpusThereAre) {
  expect_refusal(on_gpus(1, "bench --device cuda:1"), 2, {"cuda:1", "cuda:0, the only GPU"});
  expect_refusal(on_gpus(3, "compare --device cuda:7"), 2, {"cuda:7", "cuda:0 to cuda:2"});
}

TEST(DeviceOption, ListsTheImplementationsOfTheDevice) {
  const Outcome cpu = strobe("list --device cpu");
  EXPECT_TRUE(contains(cpu.out, "standard")) << cpu.out;
  EXPECT_FALSE(contains(cpu.out, "cuda:flash")) << cpu.out;
  const Outcome gpu = on_gpus(1, "list --device cuda");
  EXPECT_TRUE(contains(gpu.out, "cuda:flash")) << gpu.out;
  EXPECT_FALSE(contains(gpu.out, "oracle")) << gpu.out;
}

TEST(DeviceOption, OfTwoGpusTheOneIsLookedAt) {
  const std::string old_first = "export STROBE_FAKE_GPU_CAPABILITIES=7.5,9.0;";
  const Outcome all = on_gpus(2, "list", old_first);
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_TRUE(contains(all.out, "oracle")) << all.out;
  EXPECT_TRUE(contains(all.out, "it lacks compute capability 8.0, that of cuda:0")) << all.out;
  const Outcome second = on_gpus(2, "list --device cuda:1", old_first);
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_TRUE(contains(second.out, "cuda:1")) << second.out;
  EXPECT_FALSE(contains(second.out, "cuda:0")) << second.out;
}

TEST(DeviceOption, RefusesImplementationsOfAnother) {
  const Outcome gpu = on_gpus(1, "compare --device cuda --impl gemm --problem s8");
  expect_refusal(gpu, 2, {"cuda:gemm", "is not known", "cuda:flash"});
  const Outcome cpu = on_gpus(1, "bench --device cpu --impl cuda:flash --problem s8");
  expect_refusal(cpu, 2, {"--impl", "cuda:flash", "--device cpu"});
}

TEST_F(OnDevice, SweepsTakeItsImplementations) {
  const Outcome outcome = on_gpus(1, "sweep --device cuda --seqlen 64 --dry-run");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "cuda:flash")) << outcome.out;
}

TEST_F(OnDevice, VerifyLeavesOutTheBaselineOfGpusToo) {
  const Outcome outcome = on_gpus(1, "verify --device cuda --problem 's8 d16 fp32'");
  EXPECT_TRUE(contains(outcome.out, "cuda:flash")) << outcome.out;
  EXPECT_FALSE(contains(outcome.out, "cuda:standard")) << outcome.out;
}

TEST_F(OnDevice, RecordsSayWhichAndHow) {
  const Outcome outcome = on_gpus(2,
                                  "verify --device cuda:1 --impl flash --tf32 --deterministic "
                                  "--reference fixed --problem 's8 d16 bwd' --json -");
  const json record = json::parse(outcome.out);
  EXPECT_EQ(record["implementation"], "cuda:flash");
  EXPECT_EQ(record["device"], "cuda:1");
  EXPECT_EQ(record["options"],
            (json{{"tf32", true}, {"deterministic", true}, {"reference", "fixed"}}));
  EXPECT_EQ(record["machine"]["gpu"]["name"], "Fake GPU");
  EXPECT_EQ(record["plan"]["deterministic"], "yes");
}

TEST(InfoOfGpus, SaysHowTheyAreSetUpAndWhatToChange) {
  const Outcome info = on_gpus(2, "info", "STROBE_NVML=" STROBE_FAKE_NVML);
  EXPECT_EQ(info.status, 0) << info.err;
  for (const char* part : {"1755 of 1980 MHz", "612 of 500 W", "power cap",
                           "sudo nvidia-smi -i 0 -pl 700", "sudo nvidia-smi -i 0 -pm 1"}) {
    EXPECT_TRUE(contains(info.out, part)) << part << "\n" << info.out;
  }
  EXPECT_FALSE(contains(info.out, "-i 1")) << "NVML knows the first one alone";
}

TEST(InfoOfGpus, RecordsSayHowTheyAreSetUp) {
  const Outcome info = on_gpus(2, "info --json -", "STROBE_NVML=" STROBE_FAKE_NVML);
  ASSERT_EQ(info.status, 0) << info.err;
  const json devices = json::parse(info.out)["cuda"]["devices"];
  ASSERT_EQ(devices.size(), 2u);
  const json& first = devices[0];
  EXPECT_EQ(first["state"]["clock_mhz"], 1755) << first;
  EXPECT_EQ(first["state"]["slowed_by"], json({"power cap"}));
  EXPECT_EQ(first["settings"]["most_clock_mhz"], 1980);
  EXPECT_EQ(first["settings"]["power_limit_w"], 500);
  EXPECT_EQ(first["settings"]["persistent"], false);
  EXPECT_EQ(first["settings"]["processes"][0]["id"], 1);
  EXPECT_FALSE(first["to_change"].empty());
  EXPECT_FALSE(devices[1].contains("state")) << "NVML knows the first one alone";
}

TEST(DeviceOption, PeaksAreThoseOfWhereTheImplementationsRun) {
  const std::string problem = "--problem 'b1 s8 h1 d16 bf16'";
  const Outcome gpu = on_gpus(1, "compare --quick --impl cuda:flash " + problem);
  EXPECT_TRUE(gpu.out.starts_with("cuda:0, Fake GPU, ")) << gpu.out << gpu.err;
  const Outcome both = on_gpus(1, "compare --quick --impl cuda:flash,flash " + problem);
  EXPECT_TRUE(contains(both.out.substr(0, both.out.find('\n')), " threads, ")) << both.out;
  const Outcome none = shell(
      "STROBE_CUDA_DRIVER=/no/such/driver.so strobe compare --quick --impl cuda:flash " + problem);
  EXPECT_TRUE(none.out.starts_with("cuda:0, which cannot be used: there is no NVIDIA driver"))
      << none.out;
  const Outcome sweep =
      on_gpus(1,
              "sweep --impl cuda:flash --batch 1 --nheads 1 --seqlen 8 --headdim 16 --dtype bf16 "
              "--pass forward -o records >table; cat records");
  EXPECT_TRUE(json::parse(sweep.out).contains("roof")) << sweep.out << sweep.err;
}

TEST_F(OnDevice, OutOfMemoryIsARowAndTheNextOneRuns) {
  const std::string little = "STROBE_FAKE_GPU_MEMORY=1000000";
  const Outcome compare = on_gpus(
      1, "compare --quick --impl cuda:flash --problem 's2048 d64' --problem 's8 d16' --json -",
      little);
  EXPECT_EQ(compare.status, 1) << compare.err;
  const std::size_t line = compare.out.find('\n');
  const json first = json::parse(compare.out.substr(0, line));
  EXPECT_EQ(first["status"], "out-of-memory");
  EXPECT_TRUE(contains(first["reason"], "cuda:0 is out of memory: needed ")) << first["reason"];
  EXPECT_TRUE(contains(first["reason"], " MB free")) << first["reason"];
  EXPECT_EQ(json::parse(compare.out.substr(line + 1))["status"], "failed") << "it ran";
  const Outcome bench =
      on_gpus(1, "bench --device cuda --no-grad --problem 's2048 d64' --json -", little);
  EXPECT_EQ(bench.status, 3) << bench.err;
  EXPECT_EQ(json::parse(bench.out)["status"], "out-of-memory");
  const Outcome sweep =
      on_gpus(1, "sweep --device cuda --seqlen 2048 --batch 1 --nheads 1 --pass forward -o records",
              little);
  EXPECT_EQ(sweep.status, 3) << sweep.err;
  EXPECT_TRUE(contains(sweep.out, "is out of memory: needed ")) << sweep.out;
}

TEST_F(OnDevice, WorkThatIsNotDoneIsNotTimed) {
  const Outcome outcome =
      on_gpus(1, "compare --quick --impl cuda:flash --problem 's8 d16' --json -");
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  const json record = json::parse(outcome.out);
  EXPECT_EQ(record["status"], "failed");
  EXPECT_TRUE(contains(record["reason"], "had not written out")) << record;
  EXPECT_FALSE(record["options"]["tf32"]);
}

}  // namespace
}  // namespace strobe::test
