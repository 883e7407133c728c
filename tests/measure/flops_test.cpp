#include "measure/flops.h"

#include <gtest/gtest.h>

#include "verify/operands.h"
#include "verify/outputs.h"

namespace strobe::lab {
namespace {

/// The definition, one pair at a time: query i stands at key position i + len_k - len_q.
double count_pairs(const Problem& p) {
  double pairs = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t len_q = p.length_q(b), len_k = p.length_k(b);
    for (std::int64_t i = 0; i < len_q; ++i) {
      for (std::int64_t j = 0; j < len_k; ++j) {
        const std::int64_t distance = j - (i + len_k - len_q);
        const bool right =
            (!p.causal || distance <= 0) && (p.window.right < 0 || distance <= p.window.right);
        const bool left = p.window.left < 0 || -distance <= p.window.left;
        pairs += right && left ? 1 : 0;
      }
    }
  }
  return pairs;
}

TEST(Flops, CountExactlyWhatEveryMaskShows) {
  for (const char* mask :
       {"", "causal", "w3:", "w:2", "w3:2", "w0:0", "w100:100", "w:0", "causal w5:"}) {
    for (const char* shape : {"b3 sq20 sk20", "b2 sq20 sk31", "b2 sq31 sk20", "b2 sq1 sk40",
                              "b2 sq5 sk0", "b0 sq5 sk5", "lq20,0,7 lk9,4,30", "lq0,0 lk0,0"}) {
      const Problem p = Problem::parse(std::string(shape) + " h6 hk2 d40 dv24 fp32 " + mask);
      const double pairs = count_pairs(p);
      EXPECT_EQ(visible_pairs(p), pairs) << p.text();
      EXPECT_EQ(flops(p), 2 * (40 + 24) * 6 * pairs) << p.text();
    }
  }
}

TEST(Flops, TheUsualFormulaForADenseSquare) {
  Problem p = Problem::parse("b2 s1024 h8 d64");
  EXPECT_EQ(flops(p), 4.0 * 2 * 8 * 1024 * 1024 * 64);
  p.pass = Pass::backward;
  EXPECT_EQ(flops(p), 10.0 * 2 * 8 * 1024 * 1024 * 64);
}

TEST(Flops, DoNotOverflowOnLongSequences) {
  EXPECT_EQ(visible_pairs(Problem::parse("b1000000 sq4 sk2000000000 h1 d64")), 8e15);
}

/// Elements of the tensors that a case really has.
std::int64_t bytes(const TensorView& view) {
  return view.given() ? view.elements() * static_cast<std::int64_t>(size_of(view.dtype)) : 0;
}

TEST(Footprint, IsTheSizeOfTheTensors) {
  for (const char* text : {"b2 sq20 sk31 h6 hk2 d40 dv24 fp16 bias:hqk sinks alibi",
                           "lq20,0,7 lk9,4,30 h6 hk2 d40 bf16", "b1 s7 h2 d8 fp32 alibi"}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      Problem p = Problem::parse(text);
      p.pass = pass;
      const Operands operands({.problem = p});
      const Tensors t = operands.tensors(pass);
      std::int64_t inputs = bytes(t.q) + bytes(t.k) + bytes(t.v) + bytes(t.bias) + bytes(t.sinks) +
                            bytes(t.alibi_slopes) + bytes(t.cu_seqlens_q) + bytes(t.cu_seqlens_k);
      std::int64_t outputs = 0;
      if (pass == Pass::backward) inputs += bytes(t.out) + bytes(t.lse) + bytes(t.dout);
      for (const auto& output : kOutputs) {
        if (output.pass == pass) outputs += bytes(t.*output.view);
      }
      EXPECT_EQ(footprint(p).inputs, inputs) << p.text();
      EXPECT_EQ(footprint(p).outputs, outputs) << p.text();
    }
  }
}

}  // namespace
}  // namespace strobe::lab
