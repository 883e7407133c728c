#include "cuda/kernels/portable_backward/portable_backward.h"

#include <limits>

#include "core/text.h"
#include "cuda/driver/launch.h"

namespace strobe::cuda::portable_backward {
namespace {

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

std::int64_t blocks_of(std::int64_t length, int block) {
  return (length + block - 1) / block;
}

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture) {
  std::vector<jit::KernelDescription> all;
  const auto add = [&](BackwardKernel kernel, const char* source, std::vector<std::string> entries,
                       const PortableBackwardFeatures& features) {
    const auto config = choose_portable_backward(kernel, features, architecture.number());
    if (shared_bytes(config) <= shared_memory_of(architecture.number()).per_block)
      all.push_back(description(config, source, std::move(entries)));
  };
  const auto keys = [&](const PortableBackwardFeatures& features) {
    add(BackwardKernel::key_gradients, "key_gradients", {"portable_key_gradients"}, features);
  };
  for (const int dim : {64, 128, 256}) {
    keys({.dim = dim, .value_dim = dim});
    keys({.dim = dim, .value_dim = dim, .window_right = true});
  }
  keys({.arithmetic = Arithmetic::fp16, .window_right = true});
  keys({.arithmetic = Arithmetic::tf32});
  keys({.arithmetic = Arithmetic::fp32});
  keys({.arithmetic = Arithmetic::fp32, .dim = 512, .value_dim = 512});
  keys({.dim = 129, .value_dim = 129});
  keys({.dim = 136, .value_dim = 136, .window_right = true});
  keys({.dim = 512, .value_dim = 512});
  keys({.window_left = true, .window_right = true, .variable_length = true});
  keys({.softcap = true, .alibi = true, .bias = true, .dropout = true});
  keys({.aligned = false});
  add(BackwardKernel::key_gradients, "rows",
      {"portable_row_statistics", "portable_sink_gradients", "portable_finish_queries"}, {});
  add(BackwardKernel::query_gradients, "query_gradients", {"portable_query_gradients"},
      {.deterministic = true});
  add(BackwardKernel::query_gradients, "exact_statistics", {"portable_exact_statistics"},
      {.window_right = true});
  add(BackwardKernel::bias_gradients, "bias_gradients", {"portable_bias_gradients"},
      {.bias = true});
  return all;
}

std::vector<std::string> missing(const Problem& problem, const jit::Architecture& architecture) {
  constexpr std::int64_t kMostHeads = 65535;  // the second axis of a grid
  if (problem.heads > kMostHeads) return {concat("more than ", kMostHeads, " heads")};
  const auto config = choose_portable_backward(BackwardKernel::key_gradients,
                                               features_of(problem, {}), architecture.number());
  if (shared_bytes(config) <= shared_memory_of(architecture.number()).per_block) return {};
  return {concat("enough shared memory on this GPU for the gradients of ", name_of(problem.dtype),
                 " with head dim ", std::max(problem.dim, problem.value_dim()))};
}

Backward::Backward(const driver::Device& device, const Problem& problem, const PlanOptions& options)
    : device_(device),
      problem_(problem),
      features_(features_of(problem, options)),
      padded_(device, problem_),
      q_(padded_.plan(false, problem.dim, workspace_)),
      dout_(padded_.plan(false, problem.value_dim(), workspace_)) {
  if (keys_pass_by()) {
    k_ = padded_.plan(true, problem.dim, workspace_);
    v_ = padded_.plan(true, problem.value_dim(), workspace_);
  }
  const std::int64_t rows = problem.heads * problem.total_q();
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  statistics_ = workspace_.take(rows * static_cast<std::int64_t>(sizeof(RowStatistics)));
  if (features_.arithmetic == Arithmetic::fp32) corrections_ = workspace_.take(rows * kFloat);
  aligned_ = load_all(true);
  if (!features_.deterministic) {
    dq_sums_ = workspace_.take(rows * query_sum_floats(aligned_.keys.config) * kFloat);
  }
}

bool Backward::keys_pass_by() const {
  return features_.deterministic || features_.bias ||
         needs_exact_statistics(features_, problem_.keys());
}

Backward::Kernel Backward::load(BackwardKernel kernel, const char* source,
                                std::vector<std::string> entries, bool aligned) const {
  PortableBackwardFeatures features = features_;
  features.aligned = aligned;
  const auto config =
      choose_portable_backward(kernel, features, jit::Architecture::of(device_).number());
  return {config, jit::load(device_, description(config, source, std::move(entries)))};
}

Backward::Variant Backward::load_all(bool aligned) const {
  Variant variant;
  variant.rows = load(
      BackwardKernel::key_gradients, "rows",
      {"portable_row_statistics", "portable_sink_gradients", "portable_finish_queries"}, aligned);
  variant.keys =
      load(BackwardKernel::key_gradients, "key_gradients", {"portable_key_gradients"}, aligned);
  if (features_.deterministic)
    variant.queries = load(BackwardKernel::query_gradients, "query_gradients",
                           {"portable_query_gradients"}, aligned);
  if (needs_exact_statistics(features_, problem_.keys()))
    variant.statistics = load(BackwardKernel::query_gradients, "exact_statistics",
                              {"portable_exact_statistics"}, aligned);
  if (features_.bias)
    variant.bias = load(BackwardKernel::bias_gradients, "bias_gradients",
                        {"portable_bias_gradients"}, aligned);
  return variant;
}

const Backward::Variant& Backward::variant_for(bool aligned) const {
  if (aligned) return aligned_;
  std::call_once(unaligned_once_, [this] { unaligned_ = load_all(false); });
  return unaligned_;
}

TuningRecord Backward::tuning() const {
  const PortableBackwardShape& shape = aligned_.keys.config.shape;
  TuningRecord record = {
      {"kernel", "portable_backward"},
      {"tile", concat(shape.block_queries, "x", shape.block_keys)},
      {"warps", concat(shape.warps)},
      {"slots", concat(shape.tile_slots)},
      {"registers", concat(aligned_.keys.kernel->resources().front().registers)},
      {"shared", concat(shared_bytes(aligned_.keys.config))},
      {"deterministic", features_.deterministic ? "yes" : "no"},
  };
  if (problem_.dtype == DType::fp32)
    record.emplace_back("fp32", features_.arithmetic == Arithmetic::tf32 ? "tf32" : "exact");
  if (q_.dim > 0 || v_.dim > 0) record.emplace_back("padded", concat(q_.dim > 0 ? q_.dim : v_.dim));
  return record;
}

PortableBackwardParams Backward::params(const Tensors& tensors, std::byte* workspace) const {
  const bool packed = problem_.varlen();
  const auto floats = [](const TensorView& view) { return static_cast<float*>(view.data); };
  const auto ints = [](const TensorView& view) { return static_cast<const int*>(view.data); };
  const auto in_workspace = [&](std::size_t offset) {
    return static_cast<void*>(workspace + offset);
  };
  PortableBackwardParams p{};
  p.q = tensors.q.data;
  p.k = tensors.k.data;
  p.v = tensors.v.data;
  p.out = tensors.out.data;
  p.dout = tensors.dout.data;
  p.lse = floats(tensors.lse);
  p.bias = tensors.bias.data;
  p.sinks = floats(tensors.sinks);
  p.alibi_slopes = floats(tensors.alibi_slopes);
  p.cu_seqlens_q = ints(tensors.cu_seqlens_q);
  p.cu_seqlens_k = ints(tensors.cu_seqlens_k);
  p.dq = tensors.dq.data;
  p.dk = tensors.dk.data;
  p.dv = tensors.dv.data;
  p.dbias = tensors.dbias.data;
  p.dsinks = floats(tensors.dsinks);
  p.statistics = static_cast<RowStatistics*>(in_workspace(statistics_));
  if (features_.arithmetic == Arithmetic::fp32)
    p.corrections = static_cast<float*>(in_workspace(corrections_));
  if (!features_.deterministic) p.dq_sums = static_cast<float*>(in_workspace(dq_sums_));
  p.q_strides = row_strides(tensors.q, packed);
  p.k_strides = row_strides(tensors.k, packed);
  p.v_strides = row_strides(tensors.v, packed);
  p.out_strides = row_strides(tensors.out, packed);
  p.dout_strides = row_strides(tensors.dout, packed);
  p.dq_strides = row_strides(tensors.dq, packed);
  p.dk_strides = row_strides(tensors.dk, packed);
  p.dv_strides = row_strides(tensors.dv, packed);
  p.lse_strides = lse_strides(tensors.lse, packed);
  if (problem_.bias) {
    p.bias_strides = bias_strides(tensors.bias);
    if (tensors.dbias.given()) p.dbias_strides = bias_strides(tensors.dbias);
    p.bias_per_sequence = problem_.bias->per_batch ? 1 : 0;
    p.bias_per_head = problem_.bias->per_head ? 1 : 0;
    p.bias_per_query = problem_.bias->per_query ? 1 : 0;
  }
  if (tensors.alibi_slopes.rank == 2) p.alibi_sequence_stride = tensors.alibi_slopes.strides[0];
  p.rows = problem_.total_q();
  set_problem(p, problem_);
  p.heads_per_key_head = static_cast<int>(problem_.group());
  p.heads_per_section = 1;
  p.dq_aligned = rows_aligned(tensors.dq) ? 1 : 0;
  p.dk_aligned = rows_aligned(tensors.dk) ? 1 : 0;
  p.dv_aligned = rows_aligned(tensors.dv) ? 1 : 0;
  p.scale = static_cast<float>(problem_.softmax_scale());
  return p;
}

namespace {

void launch(const driver::Function& function, const PortableBackwardConfig& config,
            std::int64_t blocks, std::int64_t rows, int shared,
            const PortableBackwardParams& params, abi::Stream stream) {
  if (blocks == 0 || rows == 0) return;
  driver::launch(function,
                 {.grid = {.x = static_cast<unsigned>(blocks), .y = static_cast<unsigned>(rows)},
                  .block = {.x = static_cast<unsigned>(config.threads())},
                  .dynamic_shared_bytes = shared},
                 stream, params);
}

}  // namespace

void Backward::launch_by_rows(const Kernel& kernel, const char* entry,
                              const PortableBackwardParams& params, abi::Stream stream) const {
  constexpr std::int64_t kMostBlocks = 1024;
  if (params.rows == 0) return;
  launch(kernel.function(entry), kernel.config, std::min(kMostBlocks, blocks_of(params.rows, 16)),
         problem_.heads, 0, params, stream);
}

void Backward::launch_by_queries(const Kernel& kernel, const char* entry,
                                 PortableBackwardParams params, abi::Stream stream) const {
  params.blocks = static_cast<int>(blocks_of(problem_.seqlen_q, kernel.config.shape.block_queries));
  launch(kernel.function(entry), kernel.config, params.blocks * problem_.heads * problem_.batch, 1,
         shared_bytes(kernel.config), params, stream);
}

void Backward::launch_by_keys(const Kernel& kernel, PortableBackwardParams params,
                              abi::Stream stream) const {
  params.blocks = static_cast<int>(blocks_of(problem_.keys(), kernel.config.shape.block_keys));
  launch(kernel.function("portable_key_gradients"), kernel.config,
         params.blocks * problem_.kv_heads() * problem_.batch, 1, shared_bytes(kernel.config),
         params, stream);
}

void Backward::launch_by_bias(const Kernel& kernel, PortableBackwardParams params,
                              abi::Stream stream) const {
  const PortableBackwardShape& shape = kernel.config.shape;
  const Bias& bias = *problem_.bias;
  params.blocks =
      static_cast<int>(blocks_of(problem_.keys(), shape.block_keys) *
                       (bias.per_query ? blocks_of(problem_.seqlen_q, shape.block_queries) : 1));
  launch(
      kernel.function("portable_bias_gradients"), kernel.config,
      params.blocks * (bias.per_head ? problem_.heads : 1) * (bias.per_batch ? problem_.batch : 1),
      1, shared_bytes(kernel.config), params, stream);
}

void Backward::run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
  std::byte* const arrays = aligned_workspace(workspace);
  Tensors operands = tensors;
  operands.q = padded_.pad(tensors.q, q_, arrays, stream);
  operands.k = padded_.pad(tensors.k, k_, arrays, stream);
  operands.v = padded_.pad(tensors.v, v_, arrays, stream);
  operands.dout = padded_.pad(tensors.dout, dout_, arrays, stream);
  const auto anywhere = [this](int dim) {
    return !keys_pass_by() && !is_whole_chunks(dim, static_cast<int>(size_of(problem_.dtype)));
  };
  const Variant& kernels = variant_for(rows_aligned(operands.q) && rows_aligned(operands.dout) &&
                                       (anywhere(features_.dim) || rows_aligned(operands.k)) &&
                                       (anywhere(features_.value_dim) || rows_aligned(operands.v)));
  const PortableBackwardParams p = params(operands, arrays);
  launch_by_rows(kernels.rows, "portable_row_statistics", p, stream);
  if (kernels.statistics.kernel)
    launch_by_queries(kernels.statistics, "portable_exact_statistics", p, stream);
  if (p.dsinks != nullptr)
    launch(kernels.rows.function("portable_sink_gradients"), kernels.rows.config, problem_.heads, 1,
           0, p, stream);
  launch_by_keys(kernels.keys, p, stream);
  if (features_.deterministic)
    launch_by_queries(kernels.queries, "portable_query_gradients", p, stream);
  else
    launch_by_rows(kernels.rows, "portable_finish_queries", p, stream);
  if (p.dbias != nullptr) launch_by_bias(kernels.bias, p, stream);
}

}  // namespace strobe::cuda::portable_backward
