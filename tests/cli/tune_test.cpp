// `strobe tune` and --variant, as far as they need no GPU that computes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace strobe::test {
namespace {

constexpr const char* kNoDriver = "STROBE_CUDA_DRIVER=/no/such/driver.so strobe ";

void expect_quiet_refusal(const Outcome& outcome, int status,
                          std::initializer_list<const char*> words) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  for (const char* word : words) EXPECT_TRUE(contains(outcome.err, word)) << outcome.err;
}

TEST(Tune, SaysWhyThereIsNoGpu) {
  expect_quiet_refusal(
      shell(std::string(kNoDriver) + "tune"), 3,
      {"there is no GPU to tune on", "there is no NVIDIA driver", "--list --arch"});
  expect_quiet_refusal(shell(std::string(kNoDriver) + "tune --list"), 3,
                       {"there is no GPU to tune on"});
}

TEST(Tune, ListsWithoutAGpu) {
  const Outcome outcome = shell(std::string(kNoDriver) +
                                "tune --list --arch sm_90a --problem 'b2 s4096 h16 d128 bf16'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "b2 sq4096 h16 d128 bf16: ")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "b2 sq4096 h16 d128 bf16 bwd: ")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "\n  128x128/2/2\n")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "\n  64x128/3/1\n")) << outcome.out;
  const Outcome records = strobe("tune --list --arch sm_90a --pass forward --json -");
  const auto first = nlohmann::json::parse(records.out.substr(0, records.out.find('\n')));
  EXPECT_EQ(first["kind"], "variant");
  EXPECT_TRUE(first["usual"]) << first;
  const Outcome forward = strobe("tune --list --arch sm_90a --pass forward");
  EXPECT_EQ(forward.status, 0) << "the defaults have variants: " << forward.err;
  EXPECT_FALSE(contains(forward.out, "bwd")) << forward.out;
}

TEST(Tune, SaysThatThereIsNothingToTune) {
  for (const char* command : {"tune --device cpu", "tune --list --arch sm_80",
                              "tune --list --arch sm_90a --problem 's64 d64 fp32'"}) {
    expect_quiet_refusal(strobe(command), 3, {"only one way", "nothing to tune", "Hopper"});
  }
}

TEST(Tune, FindsNothingOnAGpuThatIsNone) {
  expect_quiet_refusal(shell("STROBE_CUDA_DRIVER=" STROBE_FAKE_GPU " strobe tune"), 3,
                       {"cuda:flash has only one way", "nothing to tune"});
  expect_quiet_refusal(shell("STROBE_CUDA_DRIVER=" STROBE_FAKE_GPU " strobe tune --device cuda:7"),
                       2, {"cuda:7", "the only GPU"});
}

TEST(Tune, ErrorsSayWhatIsAllowed) {
  expect_quiet_refusal(strobe("tune --list --arch sm_75"), 2, {"sm_75", "sm_80"});
  expect_quiet_refusal(strobe("tune --arch sm_90a"), 2, {"--arch", "--list"});
  expect_quiet_refusal(strobe("tune --device cpu --impl nobody"), 2, {"nobody"});
}

TEST(VariantOption, IsRefusedWhereThereAreNone) {
  expect_quiet_refusal(strobe("bench --no-grad --variant 128x128 --problem 's8 d16 fp32'"), 2,
                       {"variant", "'128x128'", "flash has only one way"});
  expect_quiet_refusal(strobe("bench --variant 128x128 --problem 's8 d16 fp32'"), 2,
                       {"--variant", "--pass forward"});
  expect_quiet_refusal(strobe("verify --impl flash --variant 128x128 --problem 's8 d16 fp32'"), 2,
                       {"variant", "flash has only one way"});
  expect_quiet_refusal(strobe("verify --impl flash --variant 128x128"), 2,
                       {"--variant", "--problem"});
}

TEST(Cache, ListsAndClearsTunedVariantsToo) {
  const Outcome outcome = shell(
      "export STROBE_CACHE_DIR=$PWD/cache; mkdir -p cache/tuned; "
      "printf 'torn' > cache/tuned/0123456789abcdef.variant; strobe cache list --only tuned; "
      "strobe cache clear --only kernels; ls cache/tuned; strobe cache clear --only tuned; "
      "ls cache/tuned");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "0123456789abcdef.variant\nRemoved 4 B from ")) << outcome.out;
  EXPECT_EQ(outcome.out.find("0123456789abcdef.variant"),
            outcome.out.rfind("0123456789abcdef.variant"))
      << outcome.out;
}

}  // namespace
}  // namespace strobe::test
