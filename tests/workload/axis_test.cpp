#include "workload/axis.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

using Values = std::vector<std::string>;

const Setting& setting(std::string_view name) {
  const auto all = settings();
  return *std::find_if(all.begin(), all.end(), [&](const Setting& s) { return s.name == name; });
}

Values values(std::string_view name, const std::string& list) {
  return read_axis(setting(name), list).values;
}

TEST(Axis, TakesPlainValues) {
  EXPECT_EQ(read_axis(setting("batch"), "64"), (Axis{"batch", {"64"}}));
  EXPECT_EQ(values("headdim", "64,128,64"), (Values{"64", "128"})) << "none twice";
  EXPECT_EQ(values("dtype", "fp32,bf16"), (Values{"fp32", "bf16"}));
  EXPECT_EQ(values("layout", "separate,varlen"), (Values{"separate", "varlen"}));
  EXPECT_EQ(values("dropout", "0,0.1"), (Values{"0", "0.1"}));
  EXPECT_EQ(values("lengths", "5/0/9,7"), (Values{"5/0/9", "7"}));
}

TEST(Axis, TakesRangesWithBothEndsIn) {
  EXPECT_EQ(values("seqlen", "512:4096:*2"), (Values{"512", "1024", "2048", "4096"}));
  EXPECT_EQ(values("seqlen", "512:4095:*2"), (Values{"512", "1024", "2048"}));
  EXPECT_EQ(values("seqlen", "256:1024:+256"), (Values{"256", "512", "768", "1024"}));
  EXPECT_EQ(values("seqlen", "7:7:*3,1,2:3:+1"), (Values{"7", "1", "2", "3"}));
  EXPECT_EQ(values("seqlen", "0:2:+1"), (Values{"0", "1", "2"}));
  EXPECT_EQ(values("seqlen", "1:10000:+1").size(), 10'000u);
}

TEST(Axis, AWindowIsAValueAndNotARange) {
  EXPECT_EQ(values("window", "128:0,256:0"), (Values{"128:0", "256:0"}));
  EXPECT_THROW(values("window", "128:256:*2"), InvalidArgument);
}

TEST(Axis, CausalCanBeBare) {
  EXPECT_EQ(values("causal", "both"), (Values{"no", "yes"}));
  EXPECT_EQ(values("causal", ""), (Values{"yes"}));
  EXPECT_EQ(values("causal", "no"), (Values{"no"}));
}

TEST(Axis, RelationsFollowOtherSettings) {
  EXPECT_EQ(values("batch", "2,tokens/16384"), (Values{"2", "tokens/16384"}));
  EXPECT_EQ(resolve({{"batch", "tokens/16384"}, {"seqlen", "512"}}).at("batch"), "32");
  EXPECT_EQ(resolve({{"batch", "tokens/4096"}}).at("batch"), "4") << "the default seqlen is 1024";
  const SettingValues chained =
      resolve({{"nheads", "hidden/2048"}, {"headdim", "128"}, {"kv-heads", "nheads/4"}});
  EXPECT_EQ(chained.at("nheads"), "16");
  EXPECT_EQ(chained.at("kv-heads"), "4");
  EXPECT_EQ(resolve({{"lengths", "5/9"}}).at("lengths"), "5/9");
}

template <class Action>
void expect_refusal(const Action& action, const std::string& option, const std::string& about) {
  try {
    action();
    FAIL() << option << " was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.field(), option);
    EXPECT_NE(std::string(error.what()).find(about), std::string::npos) << error.what();
  }
}

class WrongList : public testing::TestWithParam<std::vector<const char*>> {};

TEST_P(WrongList, IsRefusedByName) {
  const std::string name = GetParam()[0];
  expect_refusal([&] { values(name, GetParam()[1]); }, "--" + name, GetParam()[2]);
}

INSTANTIATE_TEST_SUITE_P(
    Axis, WrongList,
    testing::Values(std::vector{"batch", "-1", "'-1', allowed is a whole number from 1"},
                    std::vector{"batch", "", "''"}, std::vector{"batch", "1,,2", "''"},
                    std::vector{"batch", "1,", "''"},
                    std::vector{"seqlen", "512:16384", "FIRST:LAST:*FACTOR"},
                    std::vector{"seqlen", "512:16384:", "FIRST:LAST:*FACTOR"},
                    std::vector{"seqlen", "512:16384:2", "FIRST:LAST:*FACTOR"},
                    std::vector{"seqlen", "512:x:*2", "FIRST:LAST:*FACTOR"},
                    std::vector{"seqlen", "-4:8:+2", "FIRST:LAST:*FACTOR"},
                    std::vector{"seqlen", "1:2:+1:3", "FIRST:LAST:*FACTOR"},
                    std::vector{"seqlen", "1024:512:*2", "nothing in it"},
                    std::vector{"seqlen", "512:1024:*1", "factor from 2"},
                    std::vector{"seqlen", "0:1024:*2", "first number from 1"},
                    std::vector{"seqlen", "512:1024:+0", "step from 1"},
                    std::vector{"seqlen", "0:10000:+1", "10000 values"},
                    std::vector{"seqlen", "1:9223372036854775807:+1", "10000 values"},
                    std::vector{"batch", "0:4:+1", "'0', allowed is a whole number from 1"},
                    std::vector{"batch", "token/16384", "tokens/NUMBER"},
                    std::vector{"batch", "tokens/0", "tokens/NUMBER"},
                    std::vector{"batch", "tokens/", "tokens/NUMBER"},
                    std::vector{"seqlen", "tokens/16384", "FIRST:LAST"},
                    std::vector{"kv-heads", "nheads/x", "nheads/NUMBER"},
                    std::vector{"causal", "maybe", "yes or no"},
                    std::vector{"dtype", "fp32,fp64", "'fp64'"}));

TEST(Axis, ARemainderIsRefused) {
  expect_refusal(
      [] {
        resolve({{"batch", "tokens/16384"}, {"seqlen", "3000"}});
      },
      "--batch", "16384 divided by 3000");
  expect_refusal(
      [] {
        resolve({{"batch", "tokens/16384"}, {"seqlen", "0"}});
      },
      "--batch", "divided by 0");
  expect_refusal(
      [] {
        resolve({{"nheads", "6"}, {"kv-heads", "nheads/4"}});
      },
      "--kv-heads", "6 divided by 4");
}

TEST(Axis, TheLargestRangeEndsInTime) {
  EXPECT_EQ(values("seqlen", "1:9223372036854775807:*1000000000000").size(), 2u);
}

TEST(Axis, ShortensLengthsAndTokens) {
  EXPECT_EQ(shortened({"seqlen", {"512", "1024"}}, 4).values, (Values{"128", "256"}));
  EXPECT_EQ(shortened({"batch", {"2", "tokens/16384"}}, 4).values, (Values{"2", "tokens/4096"}));
  EXPECT_EQ(shortened({"nheads", {"hidden/2048"}}, 4).values, (Values{"hidden/2048"}));
  expect_refusal([] { shortened({"seqlen", {"510"}}, 4); }, "--shrink", "does not divide 510");
}

}  // namespace
}  // namespace strobe::lab
