#include "strobe/problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "strobe/error.h"

namespace strobe {
namespace {

Problem sample() {
  return {.batch = 2, .seqlen_q = 16, .heads = 4, .heads_k = 2, .dim = 8};
}

TEST(Problem, DefaultsFollowTheQueries) {
  const Problem problem{.seqlen_q = 7, .heads = 6, .dim = 16};
  problem.validate();
  EXPECT_EQ(problem.keys(), 7);
  EXPECT_EQ(problem.kv_heads(), 6);
  EXPECT_EQ(problem.value_dim(), 16);
  EXPECT_DOUBLE_EQ(problem.softmax_scale(), 0.25);
}

struct Wrong {
  const char* field;
  std::function<void(Problem&)> spoil;
};

TEST(Problem, EveryWrongFieldIsNamed) {
  const double nan = std::nan("");
  const std::vector<Wrong> wrongs = {
      {"batch", [](Problem& p) { p.batch = -1; }},
      {"seqlen_q", [](Problem& p) { p.seqlen_q = -5; }},
      {"seqlen_q", [](Problem& p) { p.seqlen_q = INT64_MAX; }},
      {"seqlen_k", [](Problem& p) { p.seqlen_k = -1; }},
      {"heads", [](Problem& p) { p.heads = 0; }},
      {"heads_k", [](Problem& p) { p.heads_k = 3; }},
      {"heads_k", [](Problem& p) { p.heads_k = 8; }},
      {"heads_k", [](Problem& p) { p.heads_k = 0; }},
      {"dim", [](Problem& p) { p.dim = 0; }},
      {"dim", [](Problem& p) { p.dim = 513; }},
      {"dim_v", [](Problem& p) { p.dim_v = 1000; }},
      {"dtype", [](Problem& p) { p.dtype = DType::int32; }},
      {"dtype", [](Problem& p) { p.dtype = static_cast<DType>(77); }},
      {"pass", [](Problem& p) { p.pass = static_cast<Pass>(9); }},
      {"layout", [](Problem& p) { p.layout = static_cast<Layout>(9); }},
      {"layout", [](Problem& p) { p.layout = Layout::qkvpacked; }},
      {"layout", [](Problem& p) { p.layout = Layout::kvpacked, p.dim_v = 16; }},
      {"scale", [nan](Problem& p) { p.scale = nan; }},
      {"scale", [](Problem& p) { p.scale = 1e300; }},
      {"scale", [](Problem& p) { p.scale = -1e-40; }},
      {"window.left", [](Problem& p) { p.window.left = -2; }},
      {"window.right", [](Problem& p) { p.window.right = INT64_MAX; }},
      {"softcap", [](Problem& p) { p.softcap = -1; }},
      {"softcap", [nan](Problem& p) { p.softcap = nan; }},
      {"softcap", [](Problem& p) { p.softcap = 1e39; }},
      {"softcap", [](Problem& p) { p.softcap = 1e-40; }},
      {"softcap", [](Problem& p) { p.softcap = 1e-46; }},
      {"dropout", [](Problem& p) { p.dropout = 1; }},
      {"dropout", [nan](Problem& p) { p.dropout = nan; }},
      {"lengths_q",
       [](Problem& p) {
         p.lengths_q = {1}, p.lengths_k = {1, 2};
       }},
      {"lengths_q",
       [](Problem& p) {
         p.lengths_q = {1, 17}, p.lengths_k = {1, 2};
       }},
      {"lengths_k",
       [](Problem& p) {
         p.lengths_q = {1, 2}, p.lengths_k = {1, -2};
       }},
      {"lengths_k",
       [](Problem& p) {
         p.lengths_q = {1, 2};
       }},
      {"q", [](Problem& p) { p.batch = p.seqlen_q = p.heads = 1 << 30, p.heads_k = 1; }},
      {"k", [](Problem& p) { p.batch = 1 << 30, p.seqlen_k = 1 << 30; }},
      {"bias",
       [](Problem& p) { p.batch = p.seqlen_q = 1 << 20, p.seqlen_k = 1 << 24, p.bias = Bias{}; }},
  };
  for (const auto& wrong : wrongs) {
    Problem problem = sample();
    wrong.spoil(problem);
    try {
      problem.validate();
      ADD_FAILURE() << wrong.field << " was accepted: " << problem.text();
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.field(), wrong.field) << error.what();
      EXPECT_TRUE(std::string(error.what()).starts_with(wrong.field));
    }
  }
}

TEST(Problem, ScaleAndSoftcapMayBeWhatFp32HasRoomFor) {
  for (const double value : {0.0, 1e-37, 1.0, 1e37}) {
    Problem problem = sample();
    problem.scale = problem.softcap = value;
    EXPECT_NO_THROW(problem.validate()) << value;
    problem.scale = -value;
    EXPECT_NO_THROW(problem.validate()) << value;
  }
}

TEST(Problem, MasksAlignToTheBottomRight) {
  const auto range = [](const Problem& p, std::int64_t i, std::int64_t sq, std::int64_t sk) {
    const KeyRange keys = p.visible(i, sq, sk);
    return std::pair(keys.begin, keys.end);
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  const Problem causal{.causal = true};
  EXPECT_EQ(range(causal, 0, 3, 5), Pair(0, 3));
  EXPECT_EQ(range(causal, 2, 3, 5), Pair(0, 5));
  EXPECT_EQ(range(causal, 1, 5, 3), Pair(0, 0));  // sees nothing
  EXPECT_EQ(range(causal, 2, 5, 3), Pair(0, 1));
  const Problem both{.window = {.left = 1, .right = 1}};
  EXPECT_EQ(range(both, 0, 4, 4), Pair(0, 2));
  EXPECT_EQ(range(both, 3, 4, 4), Pair(2, 4));
  const Problem own{.window = {.left = 0, .right = 0}};
  EXPECT_EQ(range(own, 2, 4, 4), Pair(2, 3));
  const Problem causal_window{.causal = true, .window = {.left = 2, .right = 9}};
  EXPECT_EQ(range(causal_window, 3, 4, 4), Pair(1, 4));
  EXPECT_EQ(Problem{}.visible(0, 1, 9).size(), 9);
}

TEST(ProblemText, PrintsTheCompactForm) {
  const Problem problem{
      .batch = 2, .seqlen_q = 4096, .heads = 16, .heads_k = 4, .dim = 128, .causal = true};
  EXPECT_EQ(problem.text(), "b2 sq4096 h16 hk4 d128 bf16 causal");
  EXPECT_EQ(Problem::parse("b2 sq4096 h16 hk4 d128 bf16 causal"), problem);
  EXPECT_EQ(Problem::parse("causal  d128 bf16 hk4 h16 s4096 b2 fwd"), problem);
}

TEST(ProblemText, EveryFieldReadsBack) {
  const std::vector<Problem> problems = {
      sample(),
      {.pass = Pass::backward, .batch = 0, .seqlen_q = 0, .seqlen_k = 9, .dtype = DType::fp32},
      {.seqlen_q = 5,
       .seqlen_k = 5,
       .heads = 2,
       .heads_k = 2,
       .dim_v = 64,
       .dtype = DType::fp8_e4m3},
      {.seqlen_q = 5, .scale = -1.0 / 3.0, .window = {.left = 7}, .softcap = 1e-30},
      {.seqlen_q = 5, .scale = 1e22, .window = {.right = 0}, .alibi = true, .sinks = true},
      {.seqlen_q = 5,
       .bias = Bias{false, true, false},
       .dropout = 0.17,
       .dropout_seed = UINT64_MAX},
      {.seqlen_q = 5, .layout = Layout::qkvpacked, .bias = Bias{}},
      {.batch = 3, .seqlen_q = 6, .lengths_q = {6, 0, 2}, .lengths_k = {6, 0, 2}},
      {.batch = 2, .seqlen_q = 9, .seqlen_k = 20, .lengths_q = {6, 0}, .lengths_k = {0, 12}},
      {.batch = 2, .seqlen_q = 6, .lengths_q = {6, 0}, .lengths_k = {0, 1}},
  };
  for (const auto& problem : problems) {
    problem.validate();
    EXPECT_EQ(Problem::parse(problem.text()), problem) << problem.text();
  }
}

TEST(ProblemText, LengthsImplyTheRest) {
  const Problem problem = Problem::parse("lq3,1,4 lk9,0,2 d8");
  EXPECT_EQ(problem.batch, 3);
  EXPECT_EQ(problem.seqlen_q, 4);
  EXPECT_EQ(problem.keys(), 9);
  EXPECT_EQ(problem.total_k(), 11);
  EXPECT_EQ(Problem::parse("lq3,1").lengths_k, (std::vector<std::int64_t>{3, 1}));
}

TEST(ProblemText, RejectsAndNamesTheWord) {
  const std::vector<std::pair<const char*, const char*>> wrongs = {
      {"b2 h4", "no length"},
      {"", "no length"},
      {"s8 q4", "'q4'"},
      {"s8 d", "'d'"},
      {"s8 d8x", "'d8x'"},
      {"s8 d99999999999999999999", "not a number in range"},
      {"s8 fp16 bf16", "'bf16'"},
      {"s8 sq9", "'sq9'"},
      {"s8 causal causal", "'causal'"},
      {"s8 w7", "wLEFT:RIGHT"},
      {"s8 bias:xyz", "bias axes"},
      {"s-8", "seqlen_q"},
      {"s8 drop2", "dropout"},
      {"s8 lk3 d8", "lk without lq"},
      {"lq3,,1", "not a number"},
      {"s8 seed-1", "'seed-1'"},
      {"s8 scalenan", "'scalenan'"},
      {"s8 Causal", "'Causal'"},
  };
  for (const auto& [text, expected] : wrongs) {
    try {
      Problem::parse(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos)
          << text << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace strobe
