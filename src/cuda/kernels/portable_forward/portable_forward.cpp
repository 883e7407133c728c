#include "cuda/kernels/portable_forward/portable_forward.h"

#include <algorithm>
#include <limits>

#include "core/text.h"
#include "cuda/driver/launch.h"

namespace strobe::cuda::portable_forward {
namespace {

PortableForwardFeatures features_of(const Problem& problem, bool tf32) {
  const Window window = problem.effective_window();
  return {.arithmetic = arithmetic_of(problem.dtype, tf32),
          .dim = static_cast<int>(problem.dim),
          .value_dim = static_cast<int>(problem.value_dim()),
          .window_left = window.left >= 0,
          .window_right = window.right >= 0,
          .variable_length = problem.varlen(),
          .positive_scale = problem.softmax_scale() > 0,
          .softcap = problem.softcap > 0,
          .alibi = problem.alibi,
          .bias = problem.bias.has_value(),
          .sinks = problem.sinks,
          .dropout = problem.dropout > 0};
}

std::int64_t blocks_of(const Problem& problem, const PortableForwardShape& shape) {
  const std::int64_t query_blocks =
      (problem.seqlen_q + shape.block_queries - 1) / shape.block_queries;
  return problem.batch * problem.heads * query_blocks * shape.value_parts;
}

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture) {
  std::vector<PortableForwardFeatures> wanted;
  for (const int dim : {64, 128, 256}) {
    for (const bool causal : {false, true}) {
      wanted.push_back({.dim = dim, .value_dim = dim, .window_right = causal});
    }
  }
  const auto add = [&](PortableForwardFeatures features) { wanted.push_back(features); };
  add({.arithmetic = Arithmetic::fp16, .window_right = true});
  add({.arithmetic = Arithmetic::tf32});
  add({.arithmetic = Arithmetic::tf32, .dim = 512, .value_dim = 512});
  add({.arithmetic = Arithmetic::fp32, .dim = 64, .value_dim = 64});
  add({.arithmetic = Arithmetic::fp32, .window_right = true});
  add({.arithmetic = Arithmetic::fp32, .dim = 512, .value_dim = 512});
  add({.dim = 40, .value_dim = 40, .window_left = true, .window_right = true});
  add({.dim = 8, .value_dim = 8});
  add({.dim = 120, .value_dim = 120});
  add({.dim = 129, .value_dim = 129});
  add({.dim = 136, .value_dim = 136, .window_right = true});
  add({.dim = 192, .value_dim = 128, .window_right = true});
  add({.dim = 512, .value_dim = 512});
  add({.variable_length = true});
  add({.window_right = true, .variable_length = true});
  add({.softcap = true, .sinks = true});
  add({.positive_scale = false, .alibi = true});
  add({.bias = true, .dropout = true});
  add({.aligned = false});
  std::vector<jit::KernelDescription> all;
  for (const auto& features : wanted)
    all.push_back(description(choose_portable_forward(features, architecture.number())));
  return all;
}

std::vector<std::string> missing(const Problem& problem) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  std::vector<std::string> list;
  if (problem.dtype != DType::bf16 && problem.dtype != DType::fp16 && problem.dtype != DType::fp32)
    list.push_back(concat("dtype ", name_of(problem.dtype)));
  if (problem.seqlen_q > kMost || problem.keys() > kMost)
    list.emplace_back("sequences of more than 2^31 - 1 rows");
  // The smallest block of queries that there is, and the most parts of the value.
  if (blocks_of(problem, {.block_queries = 16, .value_parts = 4}) > kMost)
    list.emplace_back("so many queries and heads in one call");
  return list;
}

Forward::Forward(const driver::Device& device, const Problem& problem, bool tf32)
    : device_(device),
      problem_(problem),
      features_(features_of(problem, tf32)),
      padded_(device, problem_),
      k_(padded_.plan(true, problem.dim, workspace_)),
      v_(padded_.plan(true, problem.value_dim(), workspace_)) {
  aligned_ = load(true);
}

Forward::Variant Forward::load(bool aligned) const {
  PortableForwardFeatures features = features_;
  features.aligned = aligned;
  const PortableForwardConfig config =
      choose_portable_forward(features, jit::Architecture::of(device_).number());
  auto kernel = jit::load(device_, description(config));
  return {config, kernel, kernel->function("portable_forward")};
}

const Forward::Variant& Forward::variant_for(bool aligned) const {
  if (aligned) return aligned_;
  std::call_once(unaligned_once_, [this] { unaligned_ = load(false); });
  return unaligned_;
}

TuningRecord Forward::tuning() const {
  const PortableForwardShape& shape = aligned_.config.shape;
  const jit::Resources& resources = aligned_.kernel->resources().front();
  TuningRecord record = {
      {"kernel", "portable_forward"},
      {"tile", concat(shape.block_queries, "x", shape.block_keys)},
      {"warps", concat(shape.warps)},
      {"slots", concat(shape.tile_slots)},
      {"registers", concat(resources.registers)},
      {"shared", concat(shared_bytes(aligned_.config))},
  };
  if (shape.value_parts > 1) record.emplace_back("value parts", concat(shape.value_parts));
  if (problem_.dtype == DType::fp32)
    record.emplace_back("fp32", features_.arithmetic == Arithmetic::tf32 ? "tf32" : "exact");
  if (workspace_bytes() > 0) record.emplace_back("padded", concat(k_.dim > 0 ? k_.dim : v_.dim));
  return record;
}

PortableForwardParams Forward::params(const Tensors& tensors,
                                      const PortableForwardConfig& config) const {
  constexpr std::int64_t kCacheShare = std::int64_t{32} << 20;
  PortableForwardParams params{};
  set_operands(params, tensors, problem_.varlen());
  set_problem(params, problem_);
  set_dropout(params, problem_);
  params.bias = tensors.bias.data;
  if (tensors.bias.given()) params.bias_strides = bias_strides(tensors.bias);
  params.heads_per_key_head = static_cast<int>(problem_.group());
  params.query_blocks = static_cast<int>((problem_.seqlen_q + config.shape.block_queries - 1) /
                                         config.shape.block_queries);
  params.heads_per_section =
      heads_per_section(config.features, problem_.keys(), params.heads_per_key_head,
                        problem_.batch * problem_.heads, kCacheShare);
  params.out_aligned = rows_aligned(tensors.out) ? 1 : 0;
  params.scale = static_cast<float>(problem_.softmax_scale());
  return params;
}

void Forward::run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
  Tensors operands = tensors;
  std::byte* const copies = aligned_workspace(workspace);
  operands.k = padded_.pad(tensors.k, k_, copies, stream);
  operands.v = padded_.pad(tensors.v, v_, copies, stream);
  const bool q_aligned = rows_aligned(tensors.q) ||
                         !is_whole_chunks(features_.dim, static_cast<int>(size_of(problem_.dtype)));
  const Variant& variant =
      variant_for(q_aligned && rows_aligned(operands.k) && rows_aligned(operands.v));
  const std::int64_t blocks = blocks_of(problem_, variant.config.shape);
  if (blocks == 0) return;
  driver::launch(variant.function,
                 {.grid = {.x = static_cast<unsigned>(blocks)},
                  .block = {.x = static_cast<unsigned>(variant.config.threads())},
                  .dynamic_shared_bytes = shared_bytes(variant.config)},
                 stream, params(operands, variant.config));
}

}  // namespace strobe::cuda::portable_forward
