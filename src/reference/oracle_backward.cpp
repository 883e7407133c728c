#include "core/threads.h"
#include "reference/oracle_row.h"

namespace strobe::reference {
namespace {

// Where row `query` of dbias [batch|1, heads|1, seqlen_q|1, seqlen_k] begins.
std::int64_t dbias_row(const Problem& problem, std::int64_t sequence, std::int64_t head,
                       std::int64_t query) {
  const Bias& bias = *problem.bias;
  std::int64_t row = bias.per_batch ? sequence : 0;
  row = bias.per_head ? row * problem.heads + head : row;
  row = bias.per_query ? row * problem.seqlen_q + query : row;
  return row * problem.keys();
}

std::int64_t dbias_size(const Problem& problem) {
  const Bias& bias = *problem.bias;
  return (bias.per_batch ? problem.batch : 1) * (bias.per_head ? problem.heads : 1) *
         (bias.per_query ? problem.seqlen_q : 1) * problem.keys();
}

// Adds what one query contributes. Returns the gradient of its sink.
double backward_row(const Head& head, const float* dout, std::int64_t query, OracleResult& result) {
  const Problem& problem = head.problem;
  const Sequence& sequence = head.sequence;
  const double scale = problem.softmax_scale();
  const std::int64_t kv_head = head.index / problem.group();
  const SoftmaxRow row = softmax_row(head, query);

  // dP_ij = keep_ij · dO_i·v_j   and   D_i = Σ_j p_ij dP_ij
  std::vector<double> dp;
  double d = 0;
  for (const SeenKey& seen : row.keys) {
    dp.push_back(seen.keep * dot(dout, head.v.row(seen.key), problem.value_dim()));
    d += seen.p * dp.back();
  }

  const float* q = head.q.row(query);
  double* dq = &result.dq[((sequence.first_q + query) * problem.heads + head.index) * problem.dim];
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    const SeenKey& seen = row.keys[n];
    const double dx = seen.p * (dp[n] - d);
    if (problem.bias) {
      result.dbias[dbias_row(problem, sequence.index, head.index, query) + seen.key] += dx;
    }
    const double ds = scale * (dx * seen.cap_derivative);

    const float* k = head.k.row(seen.key);
    const std::int64_t kv_row = (sequence.first_k + seen.key) * problem.kv_heads() + kv_head;
    double* dk = &result.dk[kv_row * problem.dim];
    double* dv = &result.dv[kv_row * problem.value_dim()];
    for (std::int64_t c = 0; c < problem.dim; ++c) dq[c] += ds * k[c];
    for (std::int64_t c = 0; c < problem.dim; ++c) dk[c] += ds * q[c];
    for (std::int64_t c = 0; c < problem.value_dim(); ++c) dv[c] += seen.keep * seen.p * dout[c];
  }
  // The sink's own dP is 0: it has no value.
  return -row.p_sink * d;
}

// Adds what one query head of one sequence contributes.
double backward_head(const Problem& problem, const Tensors& inputs, std::int64_t sequence_index,
                     std::int64_t head_index, OracleResult& result) {
  const Sequence sequence = sequence_at(problem, inputs, sequence_index);
  const Head head(problem, inputs, sequence, head_index);
  const Matrix dout = read_matrix(query_rows(inputs.dout, sequence, head_index));
  double dsink = 0;
  for (std::int64_t query = 0; query < sequence.length_q; ++query) {
    dsink += backward_row(head, dout.row(query), query, result);
  }
  return dsink;
}

}  // namespace

void oracle_backward(const Problem& problem, const Tensors& inputs, int threads,
                     OracleResult& result) {
  const std::int64_t total_k = total_rows(inputs.k);
  result.dq.assign(total_rows(inputs.q) * problem.heads * problem.dim, 0.0);
  result.dk.assign(total_k * problem.kv_heads() * problem.dim, 0.0);
  result.dv.assign(total_k * problem.kv_heads() * problem.value_dim(), 0.0);
  if (problem.bias) result.dbias.assign(dbias_size(problem), 0.0);
  std::vector<double> dsinks(problem.batch * problem.heads, 0.0);  // [batch, heads]

  // Sequences and key heads share no output, except a bias that is broadcast over them. An axis
  // that shares is walked by one thread, in order.
  const bool sequences_apart = !problem.bias || problem.bias->per_batch;
  const bool heads_apart = !problem.bias || problem.bias->per_head;
  const std::int64_t sequence_parts = sequences_apart ? problem.batch : 1;
  const std::int64_t head_parts = heads_apart ? problem.kv_heads() : 1;
  const std::int64_t sequences_each = sequences_apart ? 1 : problem.batch;
  const std::int64_t heads_each = heads_apart ? problem.group() : problem.heads;

  parallel_for("oracle backward", sequence_parts * head_parts, threads,
               [&](std::int64_t item, int) {
                 const std::int64_t first_sequence = item / head_parts * sequences_each;
                 const std::int64_t first_head = item % head_parts * heads_each;
                 for (std::int64_t b = first_sequence; b < first_sequence + sequences_each; ++b) {
                   for (std::int64_t h = first_head; h < first_head + heads_each; ++h) {
                     dsinks[b * problem.heads + h] = backward_head(problem, inputs, b, h, result);
                   }
                 }
               });

  if (!problem.sinks) return;
  result.dsinks.assign(problem.heads, 0.0);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      result.dsinks[h] += dsinks[b * problem.heads + h];
    }
  }
}

}  // namespace strobe::reference
