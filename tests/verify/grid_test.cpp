#include "verify/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "strobe/registry.h"
#include "verify/verify.h"

namespace strobe::lab {
namespace {

const std::vector<Case>& quick() {
  static const std::vector<Case> cases = quick_grid();
  return cases;
}

/// How many cases of the quick grid have a property.
long count(const std::function<bool(const Case&)>& has) {
  return std::count_if(quick().begin(), quick().end(), has);
}

TEST(QuickGrid, HasEveryHeadDim) {
  for (const int dim :
       {8, 16, 21, 32, 40, 59, 64, 72, 80, 96, 111, 128, 129, 136, 160, 192, 203, 224, 256}) {
    EXPECT_GT(count([=](const Case& c) { return c.problem.dim == dim; }), 0) << dim;
  }
  for (const auto& [dim, dim_v] : {std::pair{192, 128}, {64, 256}, {128, 64}}) {
    const auto has = [d = dim, dv = dim_v](const Case& c) {
      return c.problem.dim == d && c.problem.value_dim() == dv;
    };
    EXPECT_GT(count(has), 0) << dim << " " << dim_v;
  }
}

using LengthPair = std::pair<std::int64_t, std::int64_t>;

const std::vector<LengthPair> kShort{{1, 1},     {1, 3},     {2, 1},       {1, 147},    {113, 203},
                                     {128, 217}, {113, 211}, {108, 256},   {256, 512},  {512, 256},
                                     {239, 1},   {3, 799},   {799, 3},     {127, 512},  {127, 513},
                                     {640, 128}, {307, 256}, {1023, 1024}, {1024, 1023}};

bool has_lengths(const Case& c, LengthPair lengths) {
  return c.problem.seqlen_q == lengths.first && c.problem.keys() == lengths.second;
}

TEST(QuickGrid, HasEveryPairOfLengths) {
  for (const LengthPair& lengths : kShort) {
    EXPECT_GT(count([=](const Case& c) { return has_lengths(c, lengths); }), 0)
        << lengths.first << " " << lengths.second;
  }
}

TEST(QuickGrid, HasEveryTypeInBothPasses) {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const auto has = [=](const Case& c) {
        return c.problem.dtype == dtype && c.problem.pass == pass;
      };
      EXPECT_GT(count(has), 5) << strobe::name_of(dtype) << strobe::name_of(pass);
    }
  }
}

TEST(QuickGrid, HasEveryWindowLimitOnBothSides) {
  const auto check = [](std::int64_t Window::*side) {
    for (const int limit : {-1, 0, 1, 7}) {
      EXPECT_GT(count([=](const Case& c) { return c.problem.window.*side == limit; }), 0) << limit;
    }
    for (const int beyond : {-1, 0, 9}) {
      const auto has = [=](const Case& c) {
        return c.problem.keys() > 10 && c.problem.window.*side == c.problem.keys() + beyond;
      };
      EXPECT_GT(count(has), 0) << "keys + " << beyond;
    }
  };
  check(&Window::left);
  check(&Window::right);
  EXPECT_GT(count([](const Case& c) { return c.problem.causal; }), 10);
  EXPECT_GT(count([](const Case& c) { return !c.problem.causal; }), 10);
}

TEST(QuickGrid, HasEveryFeature) {
  const std::vector<std::pair<const char*, std::function<bool(const Case&)>>> features{
      {"softcap 15, saturated",
       [](auto& c) { return c.problem.softcap == 15 && c.inputs.scale == 5; }},
      {"softcap 50, saturated",
       [](auto& c) { return c.problem.softcap == 50 && c.inputs.scale == 5; }},
      {"ALiBi", [](auto& c) { return c.problem.alibi; }},
      {"sinks backward",
       [](auto& c) { return c.problem.sinks && c.problem.pass == Pass::backward; }},
      {"dropout", [](auto& c) { return c.problem.dropout == 0.17; }},
      {"scale 1/d",
       [](auto& c) { return c.problem.scale == 1.0 / static_cast<double>(c.problem.dim); }},
      {"negative scale", [](auto& c) { return c.problem.scale.value_or(1) < 0; }},
      {"bias backward", [](auto& c) { return c.problem.bias && c.problem.pass == Pass::backward; }},
      {"bias for keys alone",
       [](auto& c) {
         return c.problem.bias == Bias{false, false, false};
       }},
      {"masked bias", [](auto& c) { return c.inputs.masked_bias; }},
      {"inputs x3", [](auto& c) { return c.inputs.scale == 3; }},
      {"inputs x5", [](auto& c) { return c.inputs.scale == 5; }},
      {"logits far below zero",
       [](auto& c) { return c.inputs.distribution == Distribution::opposed; }}};
  for (const auto& [name, has] : features) EXPECT_GT(count(has), 0) << name;
}

TEST(QuickGrid, HasEveryHeadRatioAndMultiQuery) {
  for (const int ratio : {1, 2, 3, 4, 5, 6, 7, 8, 16, 32}) {
    EXPECT_GT(count([=](const Case& c) { return c.problem.group() == ratio; }), 0) << ratio;
  }
  EXPECT_GT(count([](const Case& c) { return c.problem.heads > 1 && c.problem.kv_heads() == 1; }),
            0);
  EXPECT_GT(count([](const Case& c) { return c.problem.group() > 1 && c.problem.kv_heads() > 1; }),
            0);
}

TEST(QuickGrid, HasZeroLengthsInEveryPosition) {
  const auto zero_at = [](const std::vector<std::int64_t>& lengths, std::size_t at) {
    return at < lengths.size() && lengths[at] == 0;
  };
  for (std::size_t position = 0; position < 3; ++position) {
    const auto both = [&](const Case& c) {
      return zero_at(c.problem.lengths_q, position) && zero_at(c.problem.lengths_k, position);
    };
    EXPECT_GT(count(both), 0) << position;
  }
  EXPECT_GT(count([&](const Case& c) {
              return zero_at(c.problem.lengths_q, 0) && !zero_at(c.problem.lengths_k, 0);
            }),
            0)
      << "in q only";
  EXPECT_GT(count([&](const Case& c) {
              return !zero_at(c.problem.lengths_q, 0) && zero_at(c.problem.lengths_k, 0);
            }),
            0)
      << "in k only";
  EXPECT_GT(count([](const Case& c) { return c.problem.varlen() && c.problem.total_q() == 0; }), 0);
  EXPECT_GT(count([](const Case& c) {
              const auto& lengths = c.problem.lengths_q;
              return c.problem.varlen() &&
                     *std::max_element(lengths.begin(), lengths.end()) < c.problem.seqlen_q;
            }),
            0)
      << "all below the declared longest";
}

TEST(QuickGrid, HasEveryLayoutAndStorage) {
  for (const Layout layout : {Layout::separate, Layout::kvpacked, Layout::qkvpacked}) {
    for (const bool varlen : {false, true}) {
      const auto has = [=](const Case& c) {
        return c.problem.layout == layout && c.problem.varlen() == varlen;
      };
      EXPECT_GT(count(has), 0) << strobe::name_of(layout) << varlen;
    }
  }
  for (const std::string& name : storage_names()) {
    const Storage storage = parse_storage(name);
    EXPECT_GT(count([=](const Case& c) { return c.inputs.storage == storage; }), 0) << name;
  }
}

void expect_valid_and_distinct(const std::vector<Case>& cases) {
  std::set<std::string> names;
  for (const Case& c : cases) {
    EXPECT_NO_THROW(c.problem.validate()) << c.name();
    EXPECT_EQ(Problem::parse(c.problem.text()), c.problem) << c.name();
    EXPECT_TRUE(names.insert(c.name()).second) << "twice: " << c.name();
  }
}

TEST(QuickGrid, IsValidSmallAndTheSameEveryTime) {
  expect_valid_and_distinct(quick());
  EXPECT_GE(quick().size(), 150u);
  EXPECT_LE(quick().size(), 250u);
  EXPECT_EQ(quick(), quick_grid());
}

TEST(FullGrid, HasThousandsOfCasesAndTheLongOnes) {
  const std::vector<Case> cases = full_grid();
  expect_valid_and_distinct(cases);
  EXPECT_GE(cases.size(), 2000u);
  for (const LengthPair& lengths : {LengthPair{2048, 2048}, LengthPair{1, 131072}}) {
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(),
                            [=](const Case& c) { return has_lengths(c, lengths); }));
  }
}

TEST(FullGrid, HasOddHeadsThatLieBesideEachOtherInWholeRows) {
  const std::vector<Case> cases = full_grid();
  for (const DType dtype : {DType::fp16, DType::bf16}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      for (const bool causal : {false, true}) {
        const auto count = std::count_if(cases.begin(), cases.end(), [&](const Case& c) {
          const Problem& p = c.problem;
          return p.dtype == dtype && p.pass == pass && p.causal == causal && !p.varlen() &&
                 p.heads > 1 && p.group() == 1 && p.dim % 8 != 0 && p.heads * p.dim % 8 == 0 &&
                 p.heads * p.value_dim() % 8 == 0 && c.inputs.storage == Storage::contiguous;
        });
        EXPECT_GE(count, 2) << name_of(dtype) << ", causal " << causal;
      }
    }
  }
}

TEST(FullGrid, HasDimsAbove256OfKeysOfValuesAndOfBoth) {
  const std::vector<Case> cases = full_grid();
  constexpr std::int64_t kMost = 256;
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const auto count = [&](bool keys, bool values) {
        return std::count_if(cases.begin(), cases.end(), [&](const Case& c) {
          return c.problem.dtype == dtype && c.problem.pass == pass &&
                 (c.problem.dim > kMost) == keys && (c.problem.value_dim() > kMost) == values;
        });
      };
      EXPECT_GE(count(true, true), 2) << name_of(dtype);
      EXPECT_GE(count(true, false), 1) << name_of(dtype);
      EXPECT_GE(count(false, true), 1) << name_of(dtype);
    }
  }
}

TEST(KnownTrouble, FlashAttentionIsCorrectOnEveryCase) {
  const Implementation& flash = Registry::instance().find("flash");
  for (const Case& what : known_trouble()) {
    const Report report = verify(what, flash);
    EXPECT_EQ(report.status, Status::ok) << what.name() << ": " << report.reason;
  }
}

}  // namespace
}  // namespace strobe::lab
