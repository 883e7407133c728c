#include <algorithm>
#include <cmath>

#include "core/convert.h"
#include "core/threads.h"
#include "reference/gemm/gemm.h"
#include "reference/row_math.h"

// Five products for each block of queries: S = QKᵀ, dP = dO Vᵀ, dV += Pᵀ dO, dK += dSᵀ Q, dQ = dS
// K. dK and dV belong to one part of the queries of one key head, and the parts are added up in
// order, so that no sum depends on the number of threads.
namespace strobe::reference::gemm {
namespace {

/// Queries [begin, end) of one head against keys [span.begin, span.end), which any of them sees.
class GradientBlock {
 public:
  GradientBlock(const Head& head, std::int64_t part, std::int64_t begin, std::int64_t end)
      : head_(head),
        run_(head.run),
        plan_(head.run.plan),
        begin_(begin),
        count_(end - begin),
        span_(head.visible(begin, end)),
        sum_row_((part * run_.problem.kv_heads()) * run_.problem.total_k() +
                 run_.key_row(head.sequence, head.kv_head)),
        queries_(run_.at<void>(plan_.queries, head.thread)),
        douts_(run_.at<void>(plan_.douts, head.thread)),
        scores_(run_.at<float>(plan_.scores, head.thread)),
        gradients_(run_.at<float>(plan_.gradients, head.thread)),
        finite_queries_(pack_rows(run_, query_rows(run_.tensors.q, head.sequence, head.index),
                                  begin, end, queries_)),
        finite_douts_(pack_rows(run_, query_rows(run_.tensors.dout, head.sequence, head.index),
                                begin, end, douts_)) {}

  void run() const {
    for_each_key_block([&](std::int64_t key, std::int64_t keys) {
      meet_keys(queries_, plan_.k, run_.problem.dim, key, keys, scores_);
      meet_keys(douts_, plan_.v, run_.problem.value_dim(), key, keys, gradients_);
    });
    for (std::int64_t i = 0; i < count_; ++i) differentiate(i);
    for_each_key_block([&](std::int64_t key, std::int64_t keys) { add_products(key, keys); });
    store_dq();
  }

 private:
  template <class Body>
  void for_each_key_block(const Body& body) const {
    for (std::int64_t key = span_.begin; key < span_.end; key += plan_.key_block) {
      body(key, std::min(plan_.key_block, span_.end - key));
    }
  }

  std::int64_t column(std::int64_t key) const { return key - span_.begin; }
  std::int64_t key_row(std::int64_t key) const {
    return run_.key_row(head_.sequence, head_.kv_head) + key;
  }

  /// S or dP of one block of keys.
  void meet_keys(const void* rows, const Piece& packed, std::int64_t depth, std::int64_t key,
                 std::int64_t keys, float* out) const {
    compute(run_, {.rows = count_,
                   .columns = keys,
                   .depth = depth,
                   .left = {rows, depth},
                   .right = {run_.element_row(packed, key_row(key), depth), depth, true},
                   .out = out + column(key),
                   .out_stride = plan_.span});
  }

  /// P in the place of one row of S, as it multiplied the values, and dS in the place of dP.
  void differentiate(std::int64_t i) const {
    const Problem& problem = run_.problem;
    const RowKernels& kernels = *plan_.kernels;
    const std::int64_t query = begin_ + i;
    const KeyRange seen = head_.visible(query);
    const std::int64_t count = seen.size();
    const std::int64_t at = i * plan_.span + column(seen.begin);
    float* p = scores_ + at;
    float* ds = gradients_ + at;
    float* slopes =
        problem.softcap != 0 ? run_.at<float>(plan_.slopes, head_.thread) + at : nullptr;

    const float p_sink = softmax(query, seen, p, slopes);
    float* keep = nullptr;
    if (problem.dropout != 0) {
      keep = run_.at<float>(plan_.row, head_.thread);
      head_.draw_dropout(query, seen, keep);
      for (std::int64_t n = 0; n < count; ++n) ds[n] *= keep[n];
    }
    const float d = kernels.dot(p, ds, count);
    kernels.centre(p, d, ds, count);
    if (problem.sinks) store_dsink(query, -p_sink * d);
    if (run_.tensors.dbias.given()) store_dbias(query, seen, ds);
    for (std::int64_t n = 0; slopes != nullptr && n < count; ++n) ds[n] *= slopes[n];
    for (std::int64_t n = 0; keep != nullptr && n < count; ++n) p[n] *= keep[n];
    hide_others(i, seen);
  }

  /// Probabilities in the place of scores, 0 all of them if the row sees nothing. Returns the
  /// sink's.
  float softmax(std::int64_t query, KeyRange seen, float* scores, float* slopes) const {
    const RowKernels& kernels = *plan_.kernels;
    const Head::Logits logits = head_.logits(query, seen, scores, slopes);
    const float largest = std::max(logits.largest, head_.sink);
    const float base = largest == -kInfinity ? 0 : largest;
    const float sum = kernels.exponentials(scores, seen.size(), base);
    const float sink_part = std::exp(head_.sink - base);
    const bool nothing = largest == -kInfinity && !std::isnan(sum) && !std::isnan(sink_part);
    if (!logits.any || nothing) {
      std::fill_n(scores, seen.size(), 0.0F);
      return 0;
    }
    kernels.scale(scores, seen.size(), 1 / (sum + sink_part));
    return sink_part / (sum + sink_part);
  }

  /// 0 for what the mask hides, and bf16 if that is what the products want.
  void hide_others(std::int64_t i, KeyRange seen) const {
    for (float* values : {scores_ + i * plan_.span, gradients_ + i * plan_.span}) {
      std::fill(values, values + column(seen.begin), 0.0F);
      std::fill(values + column(seen.end), values + column(span_.end), 0.0F);
    }
    if (!plan_.bf16) return;
    const std::int64_t at = i * plan_.span;
    plan_.kernels->narrow(scores_ + at, column(span_.end),
                          run_.at<std::uint16_t>(plan_.weights, head_.thread) + at);
    plan_.kernels->narrow(gradients_ + at, column(span_.end),
                          run_.at<std::uint16_t>(plan_.gradient_weights, head_.thread) + at);
  }

  void store_dsink(std::int64_t query, float value) const {
    const std::int64_t row = head_.index * run_.problem.total_q() + head_.sequence.first_q + query;
    run_.at<float>(plan_.dsinks)[row] = value;
  }

  void store_dbias(std::int64_t query, KeyRange seen, const float* values) const {
    const TensorView rows =
        run_.tensors.dbias.select(0, head_.sequence.index).select(0, head_.index);
    narrow(values, seen.size(), rows.dtype,
           static_cast<std::byte*>(row_data(rows, query)) +
               seen.begin * static_cast<std::int64_t>(size_of(rows.dtype)));
  }

  /// The products of P and dS, [query_block, span], with everything else.
  void add_products(std::int64_t key, std::int64_t keys) const {
    const std::int64_t dim = run_.problem.dim, dim_v = run_.problem.value_dim();
    const auto weights = [&](const float* floats, const Piece& narrow) {
      return plan_.bf16 ? static_cast<const void*>(run_.at<std::uint16_t>(narrow, head_.thread) +
                                                   column(key))
                        : floats + column(key);
    };
    const void* p = weights(scores_, plan_.weights);
    const void* ds = weights(gradients_, plan_.gradient_weights);
    const auto add_to_keys = [&](const void* left, const void* right, std::int64_t columns,
                                 const Piece& out, bool finite) {
      compute(run_,
              {.rows = keys,
               .columns = columns,
               .depth = count_,
               .left = {left, plan_.span, true},
               .right = {right, columns},
               .accumulate = true,
               .out = run_.at<float>(out) + (sum_row_ + key) * columns,
               .out_stride = columns},
              finite);
    };
    add_to_keys(p, douts_, dim_v, plan_.dv, finite_douts_);
    add_to_keys(ds, queries_, dim, plan_.dk, finite_queries_);
    compute(run_,
            {.rows = count_,
             .columns = dim,
             .depth = keys,
             .left = {ds, plan_.span},
             .right = {run_.element_row(plan_.k, key_row(key), dim), dim},
             .accumulate = key > span_.begin,
             .out = run_.at<float>(plan_.sums, head_.thread),
             .out_stride = dim},
            run_.finite(plan_.finite_k, head_.sequence, head_.kv_head, key / plan_.key_block));
  }

  void store_dq() const {
    const std::int64_t dim = run_.problem.dim;
    const TensorView dq = query_rows(run_.tensors.dq, head_.sequence, head_.index);
    float* sums = run_.at<float>(plan_.sums, head_.thread);
    if (span_.size() == 0) std::fill_n(sums, count_ * dim, 0.0F);
    multiply(sums, count_ * dim, static_cast<float>(run_.problem.softmax_scale()));
    for (std::int64_t i = 0; i < count_; ++i) {
      narrow(sums + i * dim, dim, dq.dtype, row_data(dq, begin_ + i));
    }
  }

  const Head& head_;
  const GemmRun& run_;
  const GemmPlan& plan_;
  std::int64_t begin_;
  std::int64_t count_;
  KeyRange span_;
  std::int64_t sum_row_;  // of the first key in dk and dv
  void* queries_;
  void* douts_;
  float* scores_;
  float* gradients_;
  bool finite_queries_;
  bool finite_douts_;
};

/// One part of the queries of every query head that shares a key head.
void backward_part(const GemmRun& run, const Sequence& sequence, std::int64_t kv_head,
                   std::int64_t part, int thread) {
  const Problem& problem = run.problem;
  const GemmPlan& plan = run.plan;
  const std::int64_t first =
      part * problem.kv_heads() * problem.total_k() + run.key_row(sequence, kv_head);
  std::fill_n(run.at<float>(plan.dk) + first * problem.dim, sequence.length_k * problem.dim, 0.0F);
  std::fill_n(run.at<float>(plan.dv) + first * problem.value_dim(),
              sequence.length_k * problem.value_dim(), 0.0F);

  const std::int64_t blocks = (problem.seqlen_q + plan.query_block - 1) / plan.query_block;
  const std::int64_t begin = part * blocks / plan.parts * plan.query_block;
  const std::int64_t end =
      std::min((part + 1) * blocks / plan.parts * plan.query_block, sequence.length_q);
  for (std::int64_t g = 0; g < problem.group(); ++g) {
    const Head head(run, sequence, kv_head * problem.group() + g, thread);
    for (std::int64_t query = begin; query < end; query += plan.query_block) {
      GradientBlock(head, part, query, std::min(query + plan.query_block, end)).run();
    }
  }
}

/// Adds up the parts of `sums` [parts, kv_heads, total_k, columns] into `output`.
void store_key_gradient(const GemmRun& run, const Piece& sums, const TensorView& output,
                        float factor) {
  const Problem& problem = run.problem;
  const std::int64_t block = run.plan.key_block;
  const std::int64_t blocks = (problem.keys() + block - 1) / block;
  const std::int64_t heads = problem.kv_heads();
  parallel_for("store key gradient", problem.batch * heads * blocks, run.plan.threads,
               [&](std::int64_t item, int) {
                 const Sequence sequence = sequence_at(problem, run.tensors, item / blocks / heads);
                 const std::int64_t head = item / blocks % heads;
                 const TensorView rows = key_rows(output, sequence, head);
                 const std::int64_t columns = rows.shape[1];
                 const std::int64_t begin = item % blocks * block;
                 const std::int64_t end = std::min(begin + block, sequence.length_k);
                 for (std::int64_t key = begin; key < end; ++key) {
                   float* total =
                       run.at<float>(sums) + (run.key_row(sequence, head) + key) * columns;
                   for (std::int64_t part = 1; part < run.plan.parts; ++part) {
                     const float* more = total + part * heads * problem.total_k() * columns;
                     for (std::int64_t c = 0; c < columns; ++c) total[c] += more[c];
                   }
                   multiply(total, columns, factor);
                   narrow(total, columns, rows.dtype, row_data(rows, key));
                 }
               });
}

/// Zero, which is what stays where a key is hidden or a sequence is shorter than the longest.
void clear_dbias(const GemmRun& run) {
  const TensorView& dbias = run.tensors.dbias;
  const std::int64_t heads = dbias.shape[1], queries = dbias.shape[2];
  parallel_for("clear bias gradient", dbias.shape[0] * heads * queries, run.plan.threads,
               [&](std::int64_t item, int) {
                 const TensorView rows =
                     dbias.select(0, item / queries / heads).select(0, item / queries % heads);
                 auto* row = static_cast<std::byte*>(row_data(rows, item % queries));
                 std::fill_n(row, rows.shape[1] * static_cast<std::int64_t>(size_of(rows.dtype)),
                             std::byte{0});
               });
}

void store_dsinks(const GemmRun& run) {
  const Problem& problem = run.problem;
  const TensorView& dsinks = run.tensors.dsinks;
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    float total = 0;
    for (std::int64_t s = 0; s < problem.batch; ++s) {
      const Sequence sequence = sequence_at(problem, run.tensors, s);
      total += sum(run.at<float>(run.plan.dsinks) + head * problem.total_q() + sequence.first_q,
                   sequence.length_q);
    }
    store_element(dsinks.data, head * dsinks.strides[0], dsinks.dtype, total);
  }
}

}  // namespace

void gemm_backward(const GemmRun& run) {
  const Problem& problem = run.problem;
  const std::int64_t heads = problem.batch * problem.kv_heads();
  if (run.tensors.dbias.given()) clear_dbias(run);
  parallel_for("gemm backward", heads * run.plan.parts, run.plan.threads,
               [&](std::int64_t item, int thread) {
                 const ThreadOfCall serial(*run.plan.library);
                 // The last parts, which see the most under a causal mask, go first.
                 const std::int64_t part = run.plan.parts - 1 - item / heads;
                 backward_part(run,
                               sequence_at(problem, run.tensors, item % heads / problem.kv_heads()),
                               item % problem.kv_heads(), part, thread);
               });
  store_key_gradient(run, run.plan.dk, run.tensors.dk, static_cast<float>(problem.softmax_scale()));
  store_key_gradient(run, run.plan.dv, run.tensors.dv, 1);
  if (run.tensors.dsinks.given()) store_dsinks(run);
}

}  // namespace strobe::reference::gemm
