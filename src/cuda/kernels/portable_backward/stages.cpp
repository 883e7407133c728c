#include "cuda/kernels/portable_backward/stages.h"

#include "cuda/driver/launch.h"

namespace strobe::cuda::portable_backward {
PortableBackwardFeatures features_of(const Problem& problem, const PlanOptions& options) {
  const Window window = problem.effective_window();
  return {.arithmetic = arithmetic_of(problem.dtype, options.tf32),
          .dim = static_cast<int>(problem.dim),
          .value_dim = static_cast<int>(problem.value_dim()),
          .window_left = window.left >= 0,
          .window_right = window.right >= 0,
          .variable_length = problem.varlen(),
          .softcap = problem.softcap > 0,
          .alibi = problem.alibi,
          .bias = problem.bias.has_value(),
          .dropout = problem.dropout > 0,
          .deterministic = options.deterministic};
}

PortableBackwardParams params_of(const Problem& problem, const Tensors& tensors) {
  const bool packed = problem.varlen();
  PortableBackwardParams p{};
  set_operands(p, tensors, packed);
  set_problem(p, problem);
  set_dropout(p, problem);
  p.dout = tensors.dout.data;
  p.bias = tensors.bias.data;
  p.dq = tensors.dq.data;
  p.dk = tensors.dk.data;
  p.dv = tensors.dv.data;
  p.dbias = tensors.dbias.data;
  p.dsinks = static_cast<float*>(tensors.dsinks.data);
  p.dout_strides = row_strides(tensors.dout, packed);
  p.dq_strides = row_strides(tensors.dq, packed);
  p.dk_strides = row_strides(tensors.dk, packed);
  p.dv_strides = row_strides(tensors.dv, packed);
  if (problem.bias) {
    p.bias_strides = bias_strides(tensors.bias);
    if (tensors.dbias.given()) p.dbias_strides = bias_strides(tensors.dbias);
    p.bias_per_sequence = problem.bias->per_batch ? 1 : 0;
    p.bias_per_head = problem.bias->per_head ? 1 : 0;
    p.bias_per_query = problem.bias->per_query ? 1 : 0;
  }
  p.rows = problem.total_q();
  p.heads_per_key_head = static_cast<int>(problem.group());
  p.heads_per_section = 1;
  p.dq_aligned = rows_aligned(tensors.dq) ? 1 : 0;
  p.dk_aligned = rows_aligned(tensors.dk) ? 1 : 0;
  p.dv_aligned = rows_aligned(tensors.dv) ? 1 : 0;
  p.scale = static_cast<float>(problem.softmax_scale());
  return p;
}

WorkspaceArrays plan_arrays(const Problem& problem, const PortableBackwardFeatures& features,
                            WorkspacePlan& workspace) {
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t rows = problem.heads * problem.total_q();
  WorkspaceArrays arrays;
  arrays.statistics = workspace.take(rows * static_cast<std::int64_t>(sizeof(RowStatistics)));
  if (features.arithmetic == Arithmetic::fp32) arrays.corrections = workspace.take(rows * kFloat);
  if (!features.deterministic) {
    arrays.dq_sum_floats = rows * query_sum_floats(features);
    arrays.dq_sums = workspace.take(arrays.dq_sum_floats * kFloat);
  }
  return arrays;
}

void WorkspaceArrays::set(PortableBackwardParams& params, std::byte* workspace) const {
  params.statistics = reinterpret_cast<RowStatistics*>(workspace + statistics);
  if (corrections > 0) params.corrections = reinterpret_cast<float*>(workspace + corrections);
  if (dq_sums > 0) params.dq_sums = reinterpret_cast<float*>(workspace + dq_sums);
  params.cleared = params.dq_sums;
  params.cleared_floats = dq_sum_floats;
}

void Kernel::launch(const char* entry, std::int64_t x, std::int64_t y, int shared,
                    const PortableBackwardParams& params, abi::Stream stream) const {
  if (x == 0 || y == 0) return;
  driver::launch(function(entry),
                 {.grid = {.x = static_cast<unsigned>(x), .y = static_cast<unsigned>(y)},
                  .block = {.x = static_cast<unsigned>(config.threads())},
                  .dynamic_shared_bytes = shared},
                 stream, params);
}

void Kernel::launch_by_rows(const char* entry, const Problem& problem,
                            const PortableBackwardParams& params, abi::Stream stream) const {
  constexpr std::int64_t kMostBlocks = 1024;
  if (params.rows == 0) return;
  launch(entry, problem.heads, std::min(kMostBlocks, blocks_of(params.rows, 16)), 0, params,
         stream);
}

void Kernel::launch_by_queries(const char* entry, const Problem& problem,
                               PortableBackwardParams params, abi::Stream stream) const {
  params.blocks = static_cast<int>(blocks_of(problem.seqlen_q, config.shape.block_queries));
  launch(entry, params.blocks * problem.heads * problem.batch, 1, shared_bytes(config), params,
         stream);
}

Kernel load(const driver::Device& device, BackwardKernel kernel,
            const PortableBackwardFeatures& features, const char* source,
            std::vector<std::string> entries) {
  const auto config =
      choose_portable_backward(kernel, features, jit::Architecture::of(device).number());
  return {config, jit::load(device, description(config, source, std::move(entries)))};
}

Statistics::Statistics(const driver::Device& device, const Problem& problem,
                       const PortableBackwardFeatures& features)
    : rows_(
          load(device, BackwardKernel::key_gradients, features, "rows",
               {"portable_row_statistics", "portable_sink_gradients", "portable_finish_queries"})) {
  if (needs_exact_statistics(features, problem.keys()))
    of_short_rows_ = load(device, BackwardKernel::query_gradients, features, "exact_statistics",
                          {"portable_exact_statistics"});
}

void Statistics::compute(const Problem& problem, const PortableBackwardParams& params,
                         abi::Stream stream) const {
  rows_.launch_by_rows("portable_row_statistics", problem, params, stream);
  if (of_short_rows_.kernel)
    of_short_rows_.launch_by_queries("portable_exact_statistics", problem, params, stream);
}

BiasGradients::BiasGradients(const driver::Device& device, const PortableBackwardFeatures& features)
    : kernel_(load(device, BackwardKernel::bias_gradients, features, "bias_gradients",
                   {"portable_bias_gradients"})) {}

void BiasGradients::compute(const Problem& problem, PortableBackwardParams params,
                            abi::Stream stream) const {
  const PortableBackwardShape& shape = kernel_.config.shape;
  const Bias& bias = *problem.bias;
  params.blocks =
      static_cast<int>(blocks_of(problem.keys(), shape.block_keys) *
                       (bias.per_query ? blocks_of(problem.seqlen_q, shape.block_queries) : 1));
  kernel_.launch(
      "portable_bias_gradients",
      params.blocks * (bias.per_head ? problem.heads : 1) * (bias.per_batch ? problem.batch : 1), 1,
      shared_bytes(kernel_.config), params, stream);
}

}  // namespace strobe::cuda::portable_backward
