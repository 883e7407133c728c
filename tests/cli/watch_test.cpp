#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace strobe::test {
namespace {

constexpr const char* kWatched = "watch --problem 'sq32 h1 d16 fp32' --every 0.02 ";

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Watch, PrintsALineForEachRoundAndASummary) {
  const Outcome outcome = strobe(std::string(kWatched) + "--rounds 3");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(lines_of(outcome.out), 5u) << outcome.out;
  for (const char* part : {"flash on b1 sq32 h1 d16 fp32", "TFLOP/s", "in use", "3 rounds in "})
    EXPECT_TRUE(contains(outcome.out, part)) << outcome.out;
  EXPECT_FALSE(contains(outcome.out, "\x1b")) << "a file is no terminal";
}

TEST(Watch, EndsAfterItsTime) {
  const Outcome outcome = strobe(std::string(kWatched) + "--for 0.05 --pass backward");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "sq32 h1 d16 fp32 bwd")) << outcome.out;
}

TEST(Watch, RepeatsThePassThatTheProblemNames) {
  const Outcome outcome = strobe("watch --problem 's8 d8 fp32 bwd' --every 0.02 --rounds 1");
  EXPECT_TRUE(contains(outcome.out, "bwd")) << outcome.out << outcome.err;
  const Outcome other =
      strobe("watch --problem 's8 d8 fp32 bwd' --every 0.02 --rounds 1 --pass forward");
  EXPECT_FALSE(contains(other.out, "bwd")) << other.out << other.err;
}

TEST(Watch, ARoundIsNoLongerThanWhatIsLeftOfItsTime) {
  const Outcome outcome =
      shell("timeout 60 strobe watch --problem 's8 d8 fp32' --every 3600 --for 0.05");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST(Watch, TellsWhatItSawWhenItIsInterrupted) {
  // The signal comes from the program's own child, once there are rounds to tell of.
  const Outcome outcome = shell(std::string("sh -c 'strobe ") +
                                "watch --seqlen 32 --batch 1 --every 0.02 > out & pid=$!; "
                                "until [ \"$(wc -l < out)\" -gt 3 ]; do sleep 0.02; done; "
                                "kill -INT $pid; wait $pid; echo status $?; tail -n 1 out'");
  EXPECT_TRUE(contains(outcome.out, "status 0")) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "rounds in ")) << outcome.out;
}

TEST(Watch, WritesARecordForEachRound) {
  const Outcome outcome = strobe(std::string(kWatched) + "--rounds 2 --json -");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(lines_of(outcome.out), 2u) << outcome.out;
  const auto record = nlohmann::json::parse(outcome.out.substr(0, outcome.out.find('\n')));
  EXPECT_EQ(record["kind"], "watch-round");
  EXPECT_EQ(record["schema"], 1);
  EXPECT_EQ(record["round"], 1);
  EXPECT_GT(record["tflops"].get<double>(), 0);
}

TEST(Watch, ErrorsSayWhatIsAllowed) {
  for (const auto& [arguments, word] : std::initializer_list<std::pair<const char*, const char*>>{
           {"--rounds 0", "--rounds"},
           {"--for no", "--for"},
           {"--every 0", "--every"},
           {"--pass both", "--pass"},
           {"--impl nobody --rounds 1", "nobody"},
           {"--seqlen -1 --rounds 1", "--seqlen"}}) {
    const Outcome outcome = strobe(std::string("watch ") + arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(contains(outcome.err, word)) << outcome.err;
  }
}

}  // namespace
}  // namespace strobe::test
