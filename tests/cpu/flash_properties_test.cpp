// What must hold for attention whatever the numbers are.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "cpu/isa.h"
#include "strobe/registry.h"
#include "support/environment.h"
#include "support/tensors.h"
#include "support/tuning.h"

namespace strobe {
namespace {

using test::Operands;
using test::Tensor;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();
const auto kAllOnes = std::bit_cast<float>(0xFFFFFFFFU);  // NaN too, as are bytes of 0xFF

const Implementation& flash() {
  return Registry::instance().find("flash");
}

/// Forward, then backward if the problem asks for it.
void compute(const Problem& problem, Operands& operands, int threads = 0) {
  Problem forward = problem;
  forward.pass = Pass::forward;
  test::run(flash(), forward, operands.views(), threads);
  if (problem.pass == Pass::backward) test::run(flash(), problem, operands.views(), threads);
}

void expect_same_bits(const Operands& a, const Operands& b, const std::string& what) {
  EXPECT_EQ(a.out.bytes(), b.out.bytes()) << what;
  EXPECT_EQ(a.lse.bytes(), b.lse.bytes()) << what;
  EXPECT_EQ(a.dq.bytes(), b.dq.bytes()) << what;
  EXPECT_EQ(a.dk.bytes(), b.dk.bytes()) << what;
  EXPECT_EQ(a.dv.bytes(), b.dv.bytes()) << what;
  EXPECT_EQ(a.dbias.bytes(), b.dbias.bytes()) << what;
  EXPECT_EQ(a.dsinks.bytes(), b.dsinks.bytes()) << what;
}

TEST(FlashProperties, ThreadsDoNotChangeABit) {
  for (const char* text :
       {"b2 sq500 sk777 h4 hk2 d40 fp32 causal sinks bias:qk bwd",
        "b3 s300 h2 d64 bf16 drop0.2 w50:3 bwd", "b1 sq2 sk3000 h2 d64 bf16",
        "b1 s1500 h1 d64 bf16 causal bwd", "b1 sq3 sk3000 h4 hk2 d40 fp32 causal sinks bwd",
        "lq400,0,1,250 lk10,300,500,250 h3 d21 fp16 bias:hk alibi bwd"}) {
    const Problem problem = Problem::parse(text);
    Operands one = test::make_operands(problem, 5);
    compute(problem, one, 1);
    for (const int threads : {2, 8}) {
      Operands many = test::make_operands(problem, 5);
      compute(problem, many, threads);
      expect_same_bits(one, many, problem.text());
    }
  }
}

std::string packs_of(const Problem& problem, int threads) {
  return test::tuning_of(flash().plan(problem, {.threads = threads}), "packs");
}

// Few threads have large items, which pack for themselves, many have small ones, which share.
TEST(FlashProperties, WhoPacksDoesNotChangeABit) {
  const Problem problem = Problem::parse("b1 sq1024 sk520 h4 d24 bf16");
  EXPECT_EQ(packs_of(problem, 1), "own");
  EXPECT_EQ(packs_of(problem, 8), "shared");
  Operands own = test::make_operands(problem, 5);
  Operands shared = test::make_operands(problem, 5);
  compute(problem, own, 1);
  compute(problem, shared, 8);
  expect_same_bits(own, shared, problem.text());
}

TEST(FlashProperties, ThreadsDoNotChangeABitOfWhatIsNotFinite) {
  for (const char* text : {"b1 s400 h1 d24 bf16 causal", "b1 sq400 sk1100 h1 d24 fp16 w30:0",
                           "b1 sq300 sk2000 h1 d16 fp32 causal"}) {
    const Problem problem = Problem::parse(text);
    const auto spoiled = [&] {
      Operands operands = test::make_operands(problem, 5);
      operands.v.set((problem.keys() - 70) * problem.dim, kInf);
      operands.k.set((problem.keys() - 90) * problem.dim, kNaN);
      operands.q.set(100 * problem.dim, kInf);
      return operands;
    };
    Operands one = spoiled();
    compute(problem, one, 1);
    for (const int threads : {2, 8}) {
      Operands many = spoiled();
      compute(problem, many, threads);
      expect_same_bits(one, many, problem.text());
    }
  }
}

/// Copies rows of [.., heads * dim] elements.
void copy_rows(const Tensor& from, std::int64_t from_row, Tensor& to, std::int64_t to_row,
               std::int64_t rows, std::int64_t width) {
  for (std::int64_t i = 0; i < rows * width; ++i)
    to.set(to_row * width + i, from[from_row * width + i]);
}

TEST(FlashProperties, SplittingABatchChangesNoBit) {
  const Problem both = Problem::parse("b2 sq70 sk200 h4 hk2 d24 fp32 causal");
  const Problem one = Problem::parse("b1 sq70 sk200 h4 hk2 d24 fp32 causal");
  Operands whole = test::make_operands(both, 9);
  compute(both, whole);
  for (std::int64_t b = 0; b < 2; ++b) {
    Operands part = test::make_operands(one, 0);
    copy_rows(whole.q, b * 70, part.q, 0, 70, 4 * 24);
    copy_rows(whole.k, b * 200, part.k, 0, 200, 2 * 24);
    copy_rows(whole.v, b * 200, part.v, 0, 200, 2 * 24);
    compute(one, part);
    for (std::int64_t i = 0; i < part.out.size(); ++i) {
      ASSERT_EQ(part.out[i], whole.out[b * part.out.size() + i]);
    }
  }
}

TEST(FlashProperties, ANeighboursLengthChangesNoBit) {
  Operands results[2];
  const Problem problems[2] = {Problem::parse("sq400 sk400 lq130,50 lk90,60 h2 d32 bf16 causal"),
                               Problem::parse("sq400 sk400 lq130,400 lk90,333 h2 d32 bf16 causal")};
  for (int i = 0; i < 2; ++i) {
    results[i] = test::make_operands(problems[i], 4);
    if (i == 1) {
      copy_rows(results[0].q, 0, results[1].q, 0, 130, 2 * 32);
      copy_rows(results[0].k, 0, results[1].k, 0, 90, 2 * 32);
      copy_rows(results[0].v, 0, results[1].v, 0, 90, 2 * 32);
    }
    compute(problems[i], results[i]);
  }
  for (std::int64_t i = 0; i < 130 * 2 * 32; ++i) ASSERT_EQ(results[0].out[i], results[1].out[i]);
}

TEST(FlashProperties, PermutingKeysChangesNothingButRounding) {
  const Problem problem = Problem::parse("b1 sq40 sk300 h2 d16 fp32");
  Operands straight = test::make_operands(problem, 2);
  Operands permuted = test::make_operands(problem, 2);
  for (std::int64_t j = 0; j < 300; ++j) {
    copy_rows(straight.k, j, permuted.k, (j * 7 + 11) % 300, 1, 2 * 16);
    copy_rows(straight.v, j, permuted.v, (j * 7 + 11) % 300, 1, 2 * 16);
  }
  compute(problem, straight);
  compute(problem, permuted);
  for (std::int64_t i = 0; i < straight.out.size(); ++i)
    ASSERT_NEAR(straight.out[i], permuted.out[i], 2e-6);
}

// Keys that no query sees, holding NaN and infinity: nothing of them may show anywhere.
TEST(FlashProperties, AppendedHiddenKeysDoNotShow) {
  // With 20 more keys the bottom-right alignment shifts by 20, so the window is 20 wider.
  const Problem reference = Problem::parse("b1 sq60 sk60 h2 d24 fp32 bias:k w5: bwd");
  const Problem longer = Problem::parse("b1 sq60 sk80 h2 d24 fp32 bias:k w25: bwd");
  for (const float poison : {kNaN, kAllOnes, kInf}) {
    Operands x = test::make_operands(reference, 3);
    Operands y = test::make_operands(longer, 3);
    copy_rows(x.q, 0, y.q, 0, 60, 2 * 24);
    copy_rows(x.dout, 0, y.dout, 0, 60, 2 * 24);
    copy_rows(x.k, 0, y.k, 0, 60, 2 * 24);
    copy_rows(x.v, 0, y.v, 0, 60, 2 * 24);
    copy_rows(x.bias, 0, y.bias, 0, 60, 1);
    for (std::int64_t j = 60; j < 80; ++j) {
      y.bias.set(j, -kInf);
      for (std::int64_t c = 0; c < 2 * 24; ++c)
        y.k.set(j * 48 + c, poison), y.v.set(j * 48 + c, poison);
    }
    compute(reference, x);
    compute(longer, y);
    for (std::int64_t i = 0; i < x.out.size(); ++i) ASSERT_NEAR(x.out[i], y.out[i], 1e-6) << i;
    for (std::int64_t i = 0; i < x.dq.size(); ++i) ASSERT_NEAR(x.dq[i], y.dq[i], 3e-6) << i;
    for (std::int64_t i = 0; i < x.dk.size(); ++i) ASSERT_NEAR(x.dk[i], y.dk[i], 3e-6) << i;
    for (std::int64_t i = 60 * 48; i < 80 * 48; ++i) ASSERT_EQ(y.dk[i], 0.0F) << i;
    for (std::int64_t i = 60 * 48; i < 80 * 48; ++i) ASSERT_EQ(y.dv[i], 0.0F) << i;
  }
}

/// Sets `count` elements to bytes of 0xFF, NaN in every dtype.
void fill_with_ones(Tensor& tensor, std::int64_t first, std::int64_t count) {
  const TensorView view = tensor.view();
  const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
  std::memset(static_cast<std::byte*>(view.data) + first * bytes, 0xFF,
              static_cast<std::size_t>(count * bytes));
}

TEST(FlashProperties, ValuesOfMaskedKeysDoNotShow) {
  for (const char* text : {"b1 s100 h1 d8 bf16 causal bwd", "b1 s100 h1 d8 fp16 causal bwd"}) {
    const Problem problem = Problem::parse(text);
    Operands clean = test::make_operands(problem, 6);
    compute(problem, clean);
    for (const bool ones : {false, true}) {
      Operands dirty = test::make_operands(problem, 6);
      for (std::int64_t c = 0; c < 8 && !ones; ++c)
        dirty.v.set(99 * 8 + c, kInf), dirty.k.set(99 * 8 + c, kNaN);
      if (ones) fill_with_ones(dirty.k, 99 * 8, 8);  // alone, for infinite values would tell
      compute(problem, dirty);
      // Rows that do not see key 99. What is not finite may be multiplied by other instructions,
      // which round bf16 elsewhere, so they are the same only within that.
      for (std::int64_t i = 0; i < 99 * 8; ++i) ASSERT_NEAR(clean.out[i], dirty.out[i], 0.02);
      for (std::int64_t i = 0; i < 99 * 8; ++i) ASSERT_NEAR(clean.dq[i], dirty.dq[i], 0.02);
      EXPECT_TRUE(std::isnan(dirty.out[99 * 8]));
    }
  }
}

// On x86 the largest score does not tell, so the exponentials must.
TEST(FlashProperties, ANaNOfAnyBitsShows) {
  for (const cpu::Isa& isa : cpu::isas()) {
    if (!isa.runs_here()) continue;
    const test::ScopedVariable forced("STROBE_CPU_ISA", isa.kernels->name);
    for (const char* text : {"b1 sq30 sk300 h1 d8 fp32 bwd", "b1 sq1 sk300 h1 d8 fp32 bwd",
                             "b1 sq2 sk3000 h1 d8 fp32 bwd", "b1 sq30 sk300 h1 d8 fp32 cap5 bwd"}) {
      const Problem problem = Problem::parse(text);
      for (const std::uint32_t bits : {0x7FC00000U, 0x7FC00001U, 0x7FC000FDU, 0xFFFFFFFFU}) {
        Operands operands = test::make_operands(problem, 6);
        operands.k.set((problem.keys() - 1) * 8, std::bit_cast<float>(bits));
        compute(problem, operands);
        for (const Tensor* result : {&operands.out, &operands.lse, &operands.dq, &operands.dv})
          EXPECT_TRUE(std::isnan((*result)[0])) << isa.kernels->name << ' ' << text << ' ' << bits;
      }
    }
  }
}

TEST(FlashProperties, ARowThatSeesNothingIsZero) {
  const Problem problem = Problem::parse("b1 sq300 sk100 h1 d8 fp32 causal sinks bwd");
  Operands operands = test::make_operands(problem, 8);
  compute(problem, operands);
  for (std::int64_t i = 0; i < 200 * 8; ++i) ASSERT_EQ(operands.out[i], 0.0F);
  for (std::int64_t i = 0; i < 200; ++i) ASSERT_EQ(operands.lse[i], -kInf);
  for (std::int64_t i = 0; i < 200 * 8; ++i) ASSERT_EQ(operands.dq[i], 0.0F);
  EXPECT_NE(operands.out[299 * 8], 0.0F);
}

TEST(FlashProperties, StridesOfNoKeysMayBeAnything) {
  const Problem problem = Problem::parse("b1 sq3 sk0 h4 d8 fp32");
  Operands operands = test::make_operands(problem, 5);
  Tensors tensors = operands.views();
  for (TensorView* view : {&tensors.k, &tensors.v}) view->strides[2] = -(std::int64_t{1} << 56);
  test::run(flash(), problem, tensors, 1);
  for (std::int64_t i = 0; i < 3 * 4 * 8; ++i) EXPECT_EQ(operands.out[i], 0);
}

TEST(FlashProperties, LseIsOptional) {
  const Problem problem = Problem::parse("b1 s50 h2 d8 fp32");
  Operands with = test::make_operands(problem, 8);
  Operands without = test::make_operands(problem, 8);
  compute(problem, with);
  Tensors views = without.views();
  views.lse = {};
  test::run(flash(), problem, views);
  EXPECT_EQ(with.out.bytes(), without.out.bytes());
}

// Finite inputs whose product is an infinity less another: the row must not pass for one without
// that key.
TEST(FlashProperties, ALogitThatIsNoNumberShows) {
  for (const char* text : {"b1 sq30 sk300 h1 d8 fp32", "b1 sq30 sk300 h1 d8 bf16"}) {
    const Problem problem = Problem::parse(text);
    for (const std::int64_t key : {0, 299}) {
      Operands operands = test::make_operands(problem, 6);
      for (std::int64_t i = 0; i < 8; ++i) {
        operands.q.set(20 * 8 + i, 1e30F);
        operands.k.set(key * 8 + i, i % 2 == 0 ? 1e30F : -1e30F);
      }
      compute(problem, operands);
      EXPECT_TRUE(std::isnan(operands.out[20 * 8])) << text;
      EXPECT_FALSE(std::isnan(operands.out[19 * 8])) << text;
    }
  }
}

// A plan made for some lengths serves shorter ones; rows past the last offset stay untouched.
TEST(FlashProperties, APlanServesShorterLengths) {
  const Problem planned = Problem::parse("lq9,9 lk9,9 h1 d8 fp32");
  Operands operands = test::make_operands(planned, 8);
  Tensors views = operands.views();
  for (const auto& offsets : {views.cu_seqlens_q, views.cu_seqlens_k}) {
    auto* values = static_cast<std::int32_t*>(offsets.data);
    values[1] = 4, values[2] = 11;
  }
  test::run(flash(), planned, views);
  EXPECT_FALSE(std::isnan(operands.out[11 * 8 - 1]));
  EXPECT_TRUE(std::isnan(operands.out[11 * 8]));
}

}  // namespace
}  // namespace strobe
