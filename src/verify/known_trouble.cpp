// Cases that broke other attention kernels. A line is one way to be wrong; nearly all run
// backward, which checks the forward pass as well.
#include <string>

#include "verify/grid.h"

namespace strobe::lab {
namespace {

struct Trouble {
  const char* problem;
  Inputs inputs{};
};

const std::vector<Trouble>& troubles() {
  constexpr auto kOpposed = Distribution::opposed;
  static const std::vector<Trouble> list{
      // Large inputs: one key takes all the weight, and a maximum that lags overflows.
      {"b1 sq128 sk160 h2 d64 fp16 bwd", {.scale = 3}},
      {"b1 sq128 sk160 h2 d64 bf16 causal bwd", {.scale = 5}},
      {"b1 sq128 sk160 h2 d64 fp32 causal bwd", {.scale = 5}},
      // A very negative LSE, below the -88 where exp() of it underflows.
      {"b1 sq65 sk130 h2 d64 fp32 bwd", {.scale = 5, .distribution = kOpposed}},
      {"b1 sq65 sk130 h2 d64 bf16 causal bwd", {.scale = 5, .distribution = kOpposed}},
      // Logits below -50000 are still logits: no finite number may stand for minus infinity.
      // (Many of them: two keys whose logits differ by less than a float can tell make an error of
      // any size, and the baseline must have met such a pair as well.)
      {"b1 sq133 sk170 h2 d64 fp32 causal bwd", {.scale = 110, .distribution = kOpposed}},
      {"b1 sq33 sk70 h1 d64 bf16 w16:0 bwd", {.scale = 110, .distribution = kOpposed}},
      // Short sequences in the backward pass.
      {"b2 sq1 sk1 h2 d64 fp32 bwd"},
      {"b2 sq1 sk1 h2 d64 fp16 causal bwd"},
      {"b1 sq1 sk147 h2 d32 bf16 causal bwd"},
      {"b3 lq76,34,146 lk1,1,1 h2 d64 fp32 causal bwd"},
      {"b3 lq76,34,146 lk1,1,1 h2 d64 fp16 causal bwd"},
      {"b1 sq239 sk1 h2 d64 bf16 bwd"},
      {"b1 sq64 sk64 h2 d64 fp16 causal bwd"},
      {"b1 sq192 sk192 h2 d64 bf16 causal bwd"},
      {"b1 sq320 sk320 h1 d32 fp32 causal bwd"},
      // Rows that see nothing: output 0, LSE minus infinity, gradients 0, no NaN from 0 * infinity.
      {"b1 sq130 sk40 h2 d64 fp32 causal bwd"},
      {"b1 sq130 sk40 h2 d64 fp16 causal alibi bwd"},
      {"b1 sq100 sk200 h2 d32 fp32 w10: causal bwd"},
      {"b1 sq200 sk100 h2 d32 bf16 w5:7 bwd"},
      {"b2 sq50 sk60 h2 d64 fp32 bias:bhqk bwd", {.masked_bias = true}},
      {"b2 sq50 sk60 h2 d64 bf16 sinks bias:bk bwd", {.masked_bias = true}},
      {"b2 sq80 sk30 h4 hk2 d64 fp32 causal sinks bwd"},
      {"b2 sq7 sk0 h2 d64 fp32 bwd"},
      {"b2 sq7 sk0 h2 d64 fp16 causal sinks bwd"},
      {"b2 sq0 sk7 h2 d64 fp32 bwd"},
      {"b0 sq7 sk7 h2 d64 fp32 bwd"},
      // Zero-length sequences in every position, grouped heads, a query length of 1.
      {"b3 lq0,40,70 lk0,50,60 h4 hk2 d64 fp32 causal bwd"},
      {"b3 lq40,0,70 lk50,0,60 h4 hk2 d64 fp16 bwd"},
      {"b3 lq40,70,0 lk50,60,0 h4 hk2 d64 bf16 causal bwd"},
      {"b3 lq0,0,0 lk0,0,0 h4 hk2 d64 fp32 bwd"},
      {"b3 lq0,40,0 lk30,50,20 h4 hk1 d64 fp32 bwd"},
      {"b3 lq30,40,20 lk0,50,0 h4 hk1 d64 fp16 causal bwd"},
      {"b4 lq1,1,1,1 lk0,17,0,300 h8 hk2 d64 bf16 causal"},
      {"b4 lq1,1,1,1 lk0,17,0,300 h8 hk2 d64 fp32 causal bwd"},
      {"b3 sq256 sk512 lq10,77,3 lk20,90,200 h2 d64 fp32 causal bwd"},
      // A right limit of 0 is a mask, no limit is none; the diagonal ends in the last corner.
      {"b1 sq70 sk70 h2 d32 fp32 w:0 bwd"},
      {"b1 sq70 sk70 h2 d32 fp32 w0:0 bwd"},
      {"b1 sq70 sk70 h2 d32 fp32 w0: bwd"},
      {"b1 sq70 sk100 h2 d32 fp32 causal bwd"},
      {"b1 sq100 sk70 h2 d32 fp32 causal bwd"},
      {"b1 sq100 sk70 h2 d32 fp32 w:3 bwd"},
      // A capped logit must saturate, and its gradient vanish, not overflow in tanh or exp.
      {"b1 sq64 sk96 h2 d64 fp16 cap15 bwd", {.scale = 5}},
      {"b1 sq64 sk96 h2 d64 fp32 cap50 causal bwd", {.scale = 5}},
      // A head dim that is no multiple of any vector, and the limits.
      {"b1 sq37 sk41 h2 d1 fp32 causal bwd"},
      {"b1 sq37 sk41 h2 d512 bf16 causal bwd"},
      {"b1 sq37 sk41 h1 d72 dv33 fp16 bwd"},
      // Dropout: forward and backward must drop the same, with any tiling.
      {"b2 sq100 sk150 h2 d64 fp32 causal drop0.17 seed42 bwd"},
      {"b1 sq100 sk150 h4 hk2 d64 bf16 drop0.17 seed7 bwd"}};
  return list;
}

}  // namespace

std::vector<Case> known_trouble() {
  std::vector<Case> cases;
  for (const auto& trouble : troubles()) {
    cases.push_back({Problem::parse(trouble.problem), trouble.inputs});
    cases.back().inputs.seed = cases.size();
  }
  return cases;
}

}  // namespace strobe::lab
