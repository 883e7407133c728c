#include "measure/flops.h"

namespace strobe::lab {
namespace {

double sequence_pairs(const Problem& problem, std::int64_t len_q, std::int64_t len_k) {
  double pairs = 0;
  for (std::int64_t i = 0; i < len_q; ++i) {
    pairs += static_cast<double>(problem.visible(i, len_q, len_k).size());
  }
  return pairs;
}

std::int64_t bias_elements(const Problem& problem) {
  if (!problem.bias) return 0;
  return (problem.bias->per_batch ? problem.batch : 1) *
         (problem.bias->per_head ? problem.heads : 1) *
         (problem.bias->per_query ? problem.seqlen_q : 1) * problem.keys();
}

}  // namespace

double visible_pairs(const Problem& problem) {
  if (!problem.varlen()) {
    return static_cast<double>(problem.batch) *
           sequence_pairs(problem, problem.seqlen_q, problem.keys());
  }
  double pairs = 0;
  for (std::int64_t sequence = 0; sequence < problem.batch; ++sequence) {
    pairs += sequence_pairs(problem, problem.length_q(sequence), problem.length_k(sequence));
  }
  return pairs;
}

double flops(const Problem& problem) {
  const double forward = 2.0 * static_cast<double>(problem.dim + problem.value_dim()) *
                         static_cast<double>(problem.heads) * visible_pairs(problem);
  return problem.pass == Pass::forward ? forward : 2.5 * forward;
}

Footprint footprint(const Problem& problem) {
  const auto element = static_cast<std::int64_t>(size_of(problem.dtype));
  const auto word = static_cast<std::int64_t>(size_of(DType::fp32));
  const std::int64_t q = problem.total_q() * problem.heads * problem.dim * element;
  const std::int64_t out = problem.total_q() * problem.heads * problem.value_dim() * element;
  const std::int64_t k = problem.total_k() * problem.kv_heads() * problem.dim * element;
  const std::int64_t v = problem.total_k() * problem.kv_heads() * problem.value_dim() * element;
  const std::int64_t lse = problem.total_q() * problem.heads * word;
  const std::int64_t bias = bias_elements(problem) * element;
  const std::int64_t sinks = problem.sinks ? problem.heads * word : 0;
  const std::int64_t slopes =
      problem.alibi ? (problem.batch > 1 ? problem.batch : 1) * problem.heads * word : 0;
  const std::int64_t offsets = problem.varlen() ? 2 * (problem.batch + 1) * word : 0;

  const std::int64_t given = q + k + v + bias + sinks + slopes + offsets;
  if (problem.pass == Pass::forward) return {.inputs = given, .outputs = out + lse};
  return {.inputs = given + 2 * out + lse, .outputs = q + k + v + bias + sinks};
}

}  // namespace strobe::lab
