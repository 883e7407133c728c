#include "experiment/summation.h"

#include <algorithm>

namespace strobe::lab {
namespace {

float add_in(DType accumulator, float a, float b) {
  return round_to(accumulator, a + b);
}

float sum_sequentially(DType accumulator, std::span<const float> terms) {
  float sum = 0;
  for (const float term : terms) sum = add_in(accumulator, sum, term);
  return sum;
}

float sum_in_blocks(DType accumulator, std::span<const float> terms) {
  constexpr std::size_t kBlock = 128;
  float sum = 0;
  for (std::size_t begin = 0; begin < terms.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, terms.size() - begin);
    const float block = sum_sequentially(accumulator, terms.subspan(begin, count));
    sum = add_in(accumulator, sum, block);
  }
  return sum;
}

float sum_pairwise(DType accumulator, std::span<const float> terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return round_to(accumulator, terms.front());
  const std::size_t half = terms.size() / 2;
  return add_in(accumulator, sum_pairwise(accumulator, terms.first(half)),
                sum_pairwise(accumulator, terms.subspan(half)));
}

float sum_with_compensation(DType accumulator, std::span<const float> terms) {
  float sum = 0, lost = 0;
  for (const float term : terms) {
    const float corrected = round_to(accumulator, term - lost);
    const float next = add_in(accumulator, sum, corrected);
    lost = round_to(accumulator, round_to(accumulator, next - sum) - corrected);
    sum = next;
  }
  return sum;
}

}  // namespace

std::string_view name_of(SumOrder order) {
  switch (order) {
    case SumOrder::sequential:
      return "sequential";
    case SumOrder::blocked:
      return "blocked";
    case SumOrder::pairwise:
      return "pairwise";
    default:
      return "Kahan";
  }
}

float sum_in(DType accumulator, SumOrder order, std::span<const float> terms) {
  switch (order) {
    case SumOrder::sequential:
      return sum_sequentially(accumulator, terms);
    case SumOrder::blocked:
      return sum_in_blocks(accumulator, terms);
    case SumOrder::pairwise:
      return sum_pairwise(accumulator, terms);
    default:
      return sum_with_compensation(accumulator, terms);
  }
}

}  // namespace strobe::lab
