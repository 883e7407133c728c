// The quick grid of the laboratory, with every instruction set this machine has.
#include <gtest/gtest.h>

#include "cpu/isa.h"
#include "strobe/registry.h"
#include "support/environment.h"
#include "verify/grid.h"
#include "verify/verify.h"

namespace strobe::cpu {
namespace {

constexpr int kShares = 4;  // of the grid, so that tests run side by side

class FlashGrid : public testing::TestWithParam<std::tuple<const Isa*, int>> {};

TEST_P(FlashGrid, IsExactByTheRule) {
  const auto [isa, share] = GetParam();
  if (!isa->runs_here()) GTEST_SKIP() << "this CPU has no " << isa->kernels->name;
  const test::ScopedVariable forced("STROBE_CPU_ISA", isa->kernels->name);
  const Implementation& flash = Registry::instance().find("flash");
  const auto cases = lab::quick_grid();
  for (std::size_t i = static_cast<std::size_t>(share); i < cases.size(); i += kShares) {
    const lab::Report report = lab::verify(cases[i], flash);
    EXPECT_EQ(report.status, lab::Status::ok) << cases[i].name() << ": " << report.reason;
  }
}

// Few queries and many keys: the keys are split among the threads, and a handful of queries, of one
// head or of several that share their keys, reads them where they lie.
class FlashSplit : public testing::TestWithParam<const Isa*> {};

TEST_P(FlashSplit, IsExactByTheRule) {
  const Isa* isa = GetParam();
  if (!isa->runs_here()) GTEST_SKIP() << "this CPU has no " << isa->kernels->name;
  const test::ScopedVariable forced("STROBE_CPU_ISA", isa->kernels->name);
  for (const char* text :
       {"b1 sq1 sk5000 h4 hk1 d64 fp32", "b1 sq1 sk2100 h8 hk1 d59 bf16 alibi sinks",
        "b1 sq1 sk3000 h3 d40 fp16 cap9 bias:hqk", "b1 sq3 sk2500 h2 d40 bf16 causal",
        "b2 sq9 sk3000 h2 hk1 d64 fp16 w600:", "lq1,4,0 lk2000,1,700 h4 hk2 d64 fp32 drop0.2",
        "b1 s1100 h1 d32 fp32 causal bwd", "b1 sq2 sk3000 h4 hk2 d40 fp32 w2000: sinks bwd",
        "lq1,4,0,2,9 lk2000,1,700,0,90 h3 d32 fp32 cap5 drop0.2 bwd",
        "b1 sq40 sk1300 h4 hk2 d72 bf16 w500:10 bwd"}) {
    const lab::Report report =
        lab::verify({.problem = Problem::parse(text)}, Registry::instance().find("flash"));
    EXPECT_EQ(report.status, lab::Status::ok) << text << ": " << report.reason;
  }
}

// More keys than stay packed at a time, and blocks of queries that see none of them.
class FlashChunks : public testing::TestWithParam<const Isa*> {};

TEST_P(FlashChunks, AreExactByTheRule) {
  const Isa* isa = GetParam();
  if (!isa->runs_here()) GTEST_SKIP() << "this CPU has no " << isa->kernels->name;
  const test::ScopedVariable forced("STROBE_CPU_ISA", isa->kernels->name);
  const lab::Report report =
      lab::verify({.problem = Problem::parse("b32 s1536 h1 d8 bf16 w40:40 bwd")},
                  Registry::instance().find("flash"));
  EXPECT_EQ(report.status, lab::Status::ok) << report.reason;
}

// Logits of millions, where exponentials of 16-bit types do not reach, and gradients that cancel.
class FlashLargeInputs : public testing::TestWithParam<const Isa*> {};

TEST_P(FlashLargeInputs, AreWithinTheRule) {
  const Isa* isa = GetParam();
  if (!isa->runs_here()) GTEST_SKIP() << "this CPU has no " << isa->kernels->name;
  const test::ScopedVariable forced("STROBE_CPU_ISA", isa->kernels->name);
  for (const char* text :
       {"b1 sq70 sk600 h2 d40 fp16 causal bwd", "b1 sq70 sk90 h2 d64 bf16 bwd"}) {
    for (const double scale : {300, 2000, 20000}) {
      const lab::Case what{.problem = Problem::parse(text), .inputs = {.scale = scale}};
      const lab::Report report = lab::verify(what, Registry::instance().find("flash"));
      EXPECT_EQ(report.status, lab::Status::ok) << what.name() << ": " << report.reason;
    }
  }
}

// Of the full grid, where the rule has the least to spare in fp32: small logits far from a large
// LSE, which a distance that is rounded misses, sums over many keys, and single queries of many
// heads.
class FlashRounding : public testing::TestWithParam<const Isa*> {};

TEST_P(FlashRounding, IsExactByTheRule) {
  const Isa* isa = GetParam();
  if (!isa->runs_here()) GTEST_SKIP() << "this CPU has no " << isa->kernels->name;
  const test::ScopedVariable forced("STROBE_CPU_ISA", isa->kernels->name);
  const std::pair<const char*, lab::Inputs> cases[] = {
      {"b3 sq307 sk256 h5 hk1 d128 fp32 w:256 bias:qk bwd",
       {.seed = 100759, .storage = lab::Storage::sliced}},
      {"b1 sq8 sk105 h2 d111 fp32 scale0.009009009009009009 bwd", {.seed = 101429}},
      {"b5 sq24 sk323 lq1,1,1,1,1 lk129,0,64,300,1 h8 hk1 d128 fp32 scale0.0078125 bwd",
       {.seed = 102844, .storage = lab::Storage::noncontiguous_dout}},
      {"b2 sq256 sk512 h7 hk1 d203 fp32 w512: sinks",
       {.seed = 101038, .storage = lab::Storage::transposed}},
      // Sums of probabilities that lose more than the LSE they are to correct.
      {"b1 sq4 sk300 h2 hk1 d32 fp32 scale0.01 bwd", {.seed = 7}},
      {"b1 sq4 sk300 h2 hk1 d32 fp32 scale0.01 bwd", {.seed = 9}},
      // A rounded LSE that no sum over queries hides.
      {"b1 sq1 sk2048 h8 d64 fp32 bwd", {.seed = 3}},
      {"b1 sq1 sk2048 h8 d64 fp32 bwd", {.seed = 6}},
      // A head's share of dk and dv that is added with more than one rounding.
      {"b2 sq1 sk147 h32 hk1 d8 fp32 w0: alibi sinks bwd",
       {.seed = 100198, .storage = lab::Storage::noncontiguous_dout}},
      {"b2 sq1 sk147 h32 hk1 d8 fp32 w0: sinks bwd", {.seed = 213}},
      {"b2 sq1 h16 hk1 d64 fp32 w0: drop0.17 seed100018 bwd",
       {.seed = 100018, .storage = lab::Storage::noncontiguous_dout}}};
  for (const auto& [text, inputs] : cases) {
    const lab::Report report =
        lab::verify({Problem::parse(text), inputs}, Registry::instance().find("flash"));
    EXPECT_EQ(report.status, lab::Status::ok) << text << ": " << report.reason;
  }
}

std::vector<const Isa*> all_isas() {
  std::vector<const Isa*> result;
  for (const auto& isa : isas()) result.push_back(&isa);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Isas, FlashGrid,
                         testing::Combine(testing::ValuesIn(all_isas()),
                                          testing::Range(0, kShares)),
                         [](const auto& given) {
                           return std::string(std::get<0>(given.param)->kernels->name) + "_" +
                                  std::to_string(std::get<1>(given.param));
                         });

INSTANTIATE_TEST_SUITE_P(Isas, FlashSplit, testing::ValuesIn(all_isas()),
                         [](const auto& given) { return std::string(given.param->kernels->name); });

INSTANTIATE_TEST_SUITE_P(Isas, FlashLargeInputs, testing::ValuesIn(all_isas()),
                         [](const auto& given) { return std::string(given.param->kernels->name); });

INSTANTIATE_TEST_SUITE_P(Isas, FlashRounding, testing::ValuesIn(all_isas()),
                         [](const auto& given) { return std::string(given.param->kernels->name); });

INSTANTIATE_TEST_SUITE_P(Isas, FlashChunks, testing::ValuesIn(all_isas()),
                         [](const auto& given) { return std::string(given.param->kernels->name); });

}  // namespace
}  // namespace strobe::cpu
