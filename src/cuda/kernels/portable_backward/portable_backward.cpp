#include "cuda/kernels/portable_backward/portable_backward.h"

#include <algorithm>
#include <limits>

#include "core/text.h"

namespace strobe::cuda::portable_backward {
namespace {

/// Thread blocks of the largest grid over keys, were all blocks of rows as small as can be; that
/// over queries is the forward pass's as well.
std::int64_t most_key_blocks(const Problem& problem) {
  constexpr int kSmallest = 16;
  const std::int64_t blocks = blocks_of(problem.keys(), kSmallest);
  const std::int64_t of_heads = blocks * problem.kv_heads() * problem.batch;
  if (!problem.bias) return of_heads;
  const Bias& bias = *problem.bias;
  return std::max(of_heads, blocks * (bias.per_query ? blocks_of(problem.seqlen_q, kSmallest) : 1) *
                                (bias.per_head ? problem.heads : 1) *
                                (bias.per_batch ? problem.batch : 1));
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
  for (const int dim : {120, 136, 144}) keys({.dim = dim, .value_dim = dim, .window_right = true});
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
  constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();  // and the first
  if (problem.heads > kMostHeads) return {concat("more than ", kMostHeads, " heads")};
  if (most_key_blocks(problem) > kMostBlocks) return {"so many keys and heads in one call"};
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
      dout_(padded_.plan(false, problem.value_dim(), workspace_)),
      arrays_(plan_arrays(problem, features_, workspace_)),
      aligned_(load_all(true)) {
  if (!keys_pass_by()) return;
  k_ = padded_.plan(true, problem.dim, workspace_);
  v_ = padded_.plan(true, problem.value_dim(), workspace_);
}

bool Backward::keys_pass_by() const {
  return features_.deterministic || features_.bias ||
         needs_exact_statistics(features_, problem_.keys());
}

Backward::Variant Backward::load_all(bool aligned) const {
  PortableBackwardFeatures features = features_;
  features.aligned = aligned;
  Variant variant;
  variant.statistics = Statistics(device_, problem_, features);
  variant.keys = load(device_, BackwardKernel::key_gradients, features, "key_gradients",
                      {"portable_key_gradients"});
  if (features.deterministic)
    variant.queries = load(device_, BackwardKernel::query_gradients, features, "query_gradients",
                           {"portable_query_gradients"});
  if (features.bias) variant.bias = BiasGradients(device_, features);
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
  PortableBackwardParams p = params_of(problem_, tensors);
  arrays_.set(p, workspace);
  return p;
}

void Backward::launch_by_keys(const Kernel& kernel, PortableBackwardParams params,
                              abi::Stream stream) const {
  params.blocks = static_cast<int>(blocks_of(problem_.keys(), kernel.config.shape.block_keys));
  kernel.launch("portable_key_gradients", params.blocks * problem_.kv_heads() * problem_.batch, 1,
                shared_bytes(kernel.config), params, stream);
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
  kernels.statistics.compute(problem_, p, stream);
  const Kernel& rows = kernels.statistics.rows();
  if (p.dsinks != nullptr) rows.launch("portable_sink_gradients", problem_.heads, 1, 0, p, stream);
  launch_by_keys(kernels.keys, p, stream);
  if (features_.deterministic)
    kernels.queries.launch_by_queries("portable_query_gradients", problem_, p, stream);
  else
    rows.launch_by_rows("portable_finish_queries", problem_, p, stream);
  if (p.dbias != nullptr) kernels.bias.compute(problem_, p, stream);
}

}  // namespace strobe::cuda::portable_backward
