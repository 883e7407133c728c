#include "workload/setting.h"

#include <gtest/gtest.h>

#include <set>

#include "strobe/error.h"
#include "workload/preset.h"

namespace strobe::lab {
namespace {

std::string made(const SettingValues& values) {
  return make_problem(values).text();
}

TEST(Setting, DefaultsAreThoseOfTheQuickStart) {
  EXPECT_EQ(made({}), "b2 sq1024 h8 d64 fp32");
}

TEST(Setting, SetsWhatItIsNamedFor) {
  EXPECT_EQ(made({{"batch", "4"}, {"seqlen", "2048"}, {"nheads", "16"}, {"headdim", "128"}}),
            "b4 sq2048 h16 d128 fp32");
  EXPECT_EQ(made({{"causal", "yes"}, {"dtype", "bf16"}}), "b2 sq1024 h8 d64 bf16 causal");
  EXPECT_EQ(made({{"causal", "no"}}), "b2 sq1024 h8 d64 fp32");
  EXPECT_EQ(made({{"seqlen-k", "77"}, {"kv-heads", "2"}, {"headdim-v", "32"}}),
            "b2 sq1024 sk77 h8 hk2 d64 dv32 fp32");
  EXPECT_EQ(made({{"window", "128:0"}}), "b2 sq1024 h8 d64 fp32 w128:0");
  EXPECT_EQ(make_problem({{"window", "64"}}).window, (Window{64, 64}));
  EXPECT_EQ(make_problem({{"window", "64:"}}).window, (Window{64, -1}));
  EXPECT_EQ(make_problem({{"softcap", "30"}}).softcap, 30);
  EXPECT_EQ(make_problem({{"dropout", "0.1"}}).dropout, 0.1);
  EXPECT_EQ(make_problem({{"scale", "0.5"}}).scale, 0.5);
}

TEST(Setting, LayoutsPackWhatTheSizesSay) {
  EXPECT_EQ(made({{"layout", "qkvpacked"}}), "b2 sq1024 h8 d64 fp32 qkvpacked");
  EXPECT_EQ(made({{"layout", "kvpacked"}}), "b2 sq1024 h8 d64 fp32 kvpacked");
  EXPECT_EQ(made({{"layout", "separate"}}), made({}));
  const Problem packed = make_problem({{"layout", "varlen"}, {"batch", "3"}, {"seqlen", "40"}});
  EXPECT_EQ(packed.lengths_q, (std::vector<std::int64_t>{40, 40, 40}));
  EXPECT_EQ(packed.total_k(), 120);
  const Problem ragged = make_problem({{"lengths", "5,0,9"}});
  EXPECT_EQ(ragged.batch, 3);
  EXPECT_EQ(ragged.seqlen_q, 9);
  EXPECT_EQ(ragged, make_problem({{"lengths", "5/0/9"}}));
}

void expect_refusal(const SettingValues& values, const std::string& option,
                    const std::string& about) {
  try {
    make_problem(values);
    FAIL() << option << " was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.field(), option);
    EXPECT_NE(std::string(error.what()).find(about), std::string::npos) << error.what();
  }
}

TEST(Setting, ErrorsNameTheOptionTheValueAndWhatIsAllowed) {
  expect_refusal({{"batch", "-1"}}, "--batch", "'-1', allowed is a whole number from 1");
  expect_refusal({{"seqlen", "1e3"}}, "--seqlen", "'1e3'");
  expect_refusal({{"headdim", "513"}}, "--headdim", "512");
  expect_refusal({{"kv-heads", "3"}}, "--kv-heads", "3");
  expect_refusal({{"dtype", "fp64"}}, "--dtype", "fp32, fp16 or bf16");
  expect_refusal({{"causal", "maybe"}}, "--causal", "yes or no");
  expect_refusal({{"window", "a:b"}}, "--window", "LEFT:RIGHT");
  expect_refusal({{"window", ""}}, "--window", "LEFT:RIGHT");
  expect_refusal({{"softcap", "-3"}}, "--softcap", "from 0");
  expect_refusal({{"dropout", "1"}}, "--dropout", "1");
  expect_refusal({{"layout", "heap"}}, "--layout", "varlen");
  expect_refusal({{"lengths", "3,,4"}}, "--lengths", "whole number");
}

TEST(Setting, NamesAndFieldsAreUnique) {
  std::set<std::string_view> names, fields;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_TRUE(fields.insert(setting.field).second) << setting.field;
    if (!setting.alias.empty()) {
      EXPECT_TRUE(names.insert(setting.alias).second) << setting.alias;
    }
  }
}

TEST(Preset, EachIsAProblem) {
  for (const Preset& preset : presets()) {
    EXPECT_EQ(&find_preset(preset.name), &preset);
    const Problem problem = problem_of(preset, DType::fp16);
    EXPECT_EQ(problem.dtype, DType::fp16);
    EXPECT_NO_THROW(problem.validate());
  }
  EXPECT_EQ(problem_of(find_preset("gpt3-large"), DType::bf16).text(),
            "b2 sq2048 h96 d128 bf16 causal");
  EXPECT_THROW(find_preset("gpt5"), InvalidArgument);
}

}  // namespace
}  // namespace strobe::lab
