// Two keys with logits 0 and ln 3: the weights are 1/4 and 3/4, so values 1 and 5 give 4.
#include <strobe/attention.h>

#include <cmath>
#include <cstdio>

int main() {
  float q[] = {1};
  float k[] = {0, std::log(3.0F)};
  float v[] = {1, 5};
  float out[] = {0};
  const auto fp32 = strobe::DType::fp32;

  strobe::Attention attention({.seqlen_q = 1, .seqlen_k = 2, .dim = 1, .dtype = fp32});
  attention({.q = strobe::TensorView::contiguous(q, fp32, {1, 1, 1, 1}),
             .k = strobe::TensorView::contiguous(k, fp32, {1, 2, 1, 1}),
             .v = strobe::TensorView::contiguous(v, fp32, {1, 2, 1, 1}),
             .out = strobe::TensorView::contiguous(out, fp32, {1, 1, 1, 1})});
  std::printf("%.6f, expected 4\n", out[0]);
  return std::abs(out[0] - 4) < 1e-5 ? 0 : 1;
}
