#include "cuda/baselines/standard/unfused.h"

#include <utility>

#include "core/text.h"
#include "cuda/driver/launch.h"
#include "cuda/kernels/operands.h"
#include "cuda/workspace.h"

namespace strobe::cuda::standard {
namespace {

/// Calls copy(part, elements before it) for views [_, rows, _, dim] that are, one after the other,
/// the tensor in the order [batch, heads, rows, dim]: one for all if its heads are enough to fill
/// the device, otherwise one for each sequence.
template <class Copy>
void each_part(const TensorView& view, std::int64_t pitch, int multiprocessors, const Copy& copy) {
  const auto [batch, rows, heads, dim, none] = view.shape;
  TensorView part = view;
  if (batch * heads >= multiprocessors) {
    std::swap(part.shape[1], part.shape[2]);
    std::swap(part.strides[1], part.strides[2]);
    copy(part, 0);
    return;
  }
  part.shape = {heads, rows, 1, dim};
  part.strides = {view.strides[2], view.strides[1], 0, 1};
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  for (std::int64_t b = 0; b < batch; ++b) {
    part.data = static_cast<std::byte*>(view.data) + b * view.strides[0] * element;
    copy(part, b * heads * rows * pitch);
  }
}

}  // namespace

Unfused::Unfused(const driver::Device& device, const Problem& problem, bool tf32)
    : device_(device), problem_(problem), products_(device, problem.dtype, tf32), padder_(device) {
  const bool backward = problem.pass == Pass::backward;
  softmax_ = jit::load(device, softmax_description(features_of(problem)));
  softmax_rows_ = softmax_->function("softmax_rows");
  if (backward) {
    gradients_ = jit::load(device, gradients_description(features_of(problem)));
    softmax_gradient_rows_ = gradients_->function("softmax_gradient_rows");
    softcap_gradient_rows_ = gradients_->function("softcap_gradient_rows");
    bias_gradients_ = gradients_->function("bias_gradients");
    sink_gradients_ = gradients_->function("sink_gradients");
  }

  const std::int64_t matrices = problem.batch * problem.kv_heads();
  const std::int64_t query_rows = problem.group() * problem.seqlen_q, keys = problem.keys();
  const auto element = static_cast<std::int64_t>(size_of(problem.dtype));
  WorkspacePlan plan;
  const auto take = [&](std::int64_t rows, std::int64_t columns) {
    return plan.take(matrices * rows * pitch_of(columns) * element);
  };
  const auto arrange = [&](std::int64_t rows, std::int64_t dim) {
    return Arranged{take(rows, dim), rows, pitch_of(dim)};
  };
  const auto floats = [&] {
    return plan.take(matrices * query_rows * static_cast<std::int64_t>(sizeof(float)));
  };
  library_workspace_ = plan.take(Products::kWorkspaceBytes);
  q_ = arrange(query_rows, problem.dim);
  k_ = arrange(keys, problem.dim);
  v_ = arrange(keys, problem.value_dim());
  scores_ = weights_ = take(query_rows, keys);
  if (!backward) {
    out_ = arrange(query_rows, problem.value_dim());
  } else {
    weights_ = take(query_rows, keys);
    dout_ = arrange(query_rows, problem.value_dim());
    dq_ = arrange(query_rows, problem.dim);
    dk_ = arrange(keys, problem.dim);
    dv_ = arrange(keys, problem.value_dim());
    row_maxima_ = floats();
    row_sums_ = floats();
    sink_rows_ = floats();
  }
  workspace_bytes_ = plan.bytes();
}

std::int64_t Unfused::pitch_of(std::int64_t columns) const {
  const std::int64_t chunk = kChunkBytes / static_cast<std::int64_t>(size_of(problem_.dtype));
  return (columns + chunk - 1) / chunk * chunk;
}

TuningRecord Unfused::tuning() const {
  return {{"algorithm", "unfused"},
          {"scores", concat(name_of(problem_.dtype), " ", problem_.batch, "x", problem_.heads, "x",
                            problem_.seqlen_q, "x", problem_.keys())},
          {"library", concat("cuBLAS ", cublas::library().version())},
          {"threads of a row", concat(threads_of_row(features_of(problem_)))}};
}

void Unfused::run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
  std::byte* const base = aligned_workspace(workspace);
  const Call call{tensors, base, stream, params(tensors, base),
                  Products::Session(products_, base + library_workspace_, stream)};
  problem_.pass == Pass::forward ? forward(call) : backward(call);
}

void Unfused::forward(const Call& call) const {
  compute_scores(call);
  launch_rows(call, softmax_rows_);
  bring(call, call.tensors.v, v_);
  multiply(call, score_matrices(call, weights_), matrices(call, v_), matrices(call, out_));
  bring_back(call, out_, call.tensors.out);
}

void Unfused::backward(const Call& call) const {
  const auto scale = static_cast<float>(problem_.softmax_scale());
  const Matrices q = matrices(call, q_), k = matrices(call, k_), v = matrices(call, v_);
  const Matrices dout = matrices(call, dout_), weights = score_matrices(call, weights_);
  bring(call, call.tensors.v, v_);
  bring(call, call.tensors.dout, dout_);
  compute_scores(call);
  launch_rows(call, softmax_rows_);
  multiply(call, weights.transposed(), dout, matrices(call, dv_));
  // The probabilities are not needed any more: their gradients take their place.
  multiply(call, dout, v.transposed(), weights);
  gradients_of_logits(call);
  multiply(call, weights, k, matrices(call, dq_), scale);
  multiply(call, weights.transposed(), q, matrices(call, dk_), scale);
  bring_back(call, dq_, call.tensors.dq);
  bring_back(call, dk_, call.tensors.dk);
  bring_back(call, dv_, call.tensors.dv);
}

void Unfused::compute_scores(const Call& call) const {
  bring(call, call.tensors.q, q_);
  bring(call, call.tensors.k, k_);
  multiply(call, matrices(call, q_), matrices(call, k_).transposed(), score_matrices(call, scores_),
           static_cast<float>(problem_.softmax_scale()));
}

void Unfused::gradients_of_logits(const Call& call) const {
  launch_rows(call, softmax_gradient_rows_);
  const auto launch = [&](const driver::Function& function, std::int64_t x, std::int64_t y) {
    if (x == 0 || y == 0) return;
    driver::launch(function,
                   {.grid = {.x = static_cast<unsigned>(x), .y = static_cast<unsigned>(y)},
                    .block = {.x = kThreads}},
                   call.stream, call.params);
  };
  if (call.tensors.dbias.given()) {
    const auto& shape = call.tensors.dbias.shape;
    launch(bias_gradients_, shape[0] * shape[1] * shape[2], (shape[3] + kThreads - 1) / kThreads);
  }
  if (call.tensors.dsinks.given()) launch(sink_gradients_, problem_.heads, 1);
  // Last, for the bias is added to what softcap has bent.
  if (problem_.softcap > 0) launch_rows(call, softcap_gradient_rows_);
}

StandardParams Unfused::params(const Tensors& tensors, std::byte* workspace) const {
  const bool backward = problem_.pass == Pass::backward;
  const auto floats = [&](std::size_t offset) {
    return backward ? reinterpret_cast<float*>(workspace + offset) : nullptr;
  };
  StandardParams params{};
  params.scores = workspace + scores_;
  params.weights = workspace + weights_;
  params.row_maxima = floats(row_maxima_);
  params.row_sums = floats(row_sums_);
  params.sink_gradients = floats(sink_rows_);
  if (!backward && tensors.lse.given()) {
    params.lse = static_cast<float*>(tensors.lse.data);
    params.lse_strides = lse_strides(tensors.lse, false);
  }
  params.bias = tensors.bias.data;
  params.dbias = tensors.dbias.data;
  if (tensors.bias.given()) params.bias_strides = bias_strides(tensors.bias);
  if (tensors.dbias.given()) params.dbias_strides = bias_strides(tensors.dbias);
  params.sinks = static_cast<const float*>(tensors.sinks.data);
  params.dsinks = static_cast<float*>(tensors.dsinks.data);
  params.alibi_slopes = static_cast<const float*>(tensors.alibi_slopes.data);
  if (tensors.alibi_slopes.rank == 2)
    params.alibi_sequence_stride = tensors.alibi_slopes.strides[0];
  set_problem(params, problem_);
  set_dropout(params, problem_);
  params.rows = problem_.batch * problem_.heads * problem_.seqlen_q;
  params.pitch = pitch_of(problem_.keys());
  const Bias bias = problem_.bias.value_or(Bias{});
  params.bias_per_sequence = bias.per_batch ? 1 : 0;
  params.bias_per_head = bias.per_head ? 1 : 0;
  params.bias_per_query = bias.per_query ? 1 : 0;
  return params;
}

Matrices Unfused::matrices(const Call& call, const Arranged& operand) const {
  return {call.workspace + operand.offset, operand.rows, operand.pitch, operand.pitch};
}

Matrices Unfused::score_matrices(const Call& call, std::size_t offset) const {
  return {call.workspace + offset, q_.rows, problem_.keys(), pitch_of(problem_.keys())};
}

void Unfused::multiply(const Call& call, const Matrices& a, const Matrices& b, const Matrices& to,
                       float factor) const {
  call.products.multiply(a, b, to, factor, problem_.batch * problem_.kv_heads());
}

void Unfused::launch_rows(const Call& call, const driver::Function& function) const {
  const std::int64_t rows_of_block = kThreads / threads_of_row(features_of(problem_));
  const std::int64_t blocks = (call.params.rows + rows_of_block - 1) / rows_of_block;
  if (blocks == 0) return;
  driver::launch(function, {.grid = {.x = static_cast<unsigned>(blocks)}, .block = {.x = kThreads}},
                 call.stream, call.params);
}

void Unfused::bring(const Call& call, const TensorView& from, const Arranged& to) const {
  const auto element = static_cast<std::int64_t>(size_of(from.dtype));
  each_part(
      from, to.pitch, device_.multiprocessors(), [&](const TensorView& part, std::int64_t before) {
        padder_.pad(part, call.workspace + to.offset + before * element, to.pitch, call.stream);
      });
}

void Unfused::bring_back(const Call& call, const Arranged& from, const TensorView& to) const {
  const auto element = static_cast<std::int64_t>(size_of(to.dtype));
  each_part(
      to, from.pitch, device_.multiprocessors(), [&](const TensorView& part, std::int64_t before) {
        padder_.cut(call.workspace + from.offset + before * element, from.pitch, part, call.stream);
      });
}

}  // namespace strobe::cuda::standard
