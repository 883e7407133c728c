#include "cuda/kernels/hopper_backward/hopper_backward.h"

#include <algorithm>
#include <numbers>

#include "core/text.h"
#include "cuda/driver/launch.h"
#include "cuda/kernels/hopper_backward/finish.h"
#include "cuda/kernels/hopper_backward/variants.h"
#include "cuda/kernels/hopper_operands.h"
#include "cuda/workspace.h"

namespace strobe::cuda::hopper_backward {
namespace {

using portable_backward::blocks_of;

HopperBackwardFeatures features_of(const Problem& problem, const PlanOptions& options,
                                   bool shifted) {
  constexpr std::int64_t kMostRows = 2048;  // of 128 columns, or a few more
  auto features = hopper_features<HopperBackwardFeatures>(problem);
  features.shifted = shifted;
  features.deterministic = options.deterministic;
  // More are better divided among all blocks afterwards.
  const std::int64_t columns = std::min<std::int64_t>(problem.dim, 128);
  features.finishes =
      may_finish(features) && problem.group() * problem.seqlen_q * columns <= kMostRows * 128;
  return features;
}

/// Those of rows alone, which come first. They read heads where they lie.
PortableBackwardFeatures features_of_rows(const Problem& problem, const PlanOptions& options,
                                          bool shifted) {
  PortableBackwardFeatures features = portable_backward::features_of(problem, options);
  features.aligned = !shifted;
  return features;
}

constexpr std::string_view options_text(const HopperBackwardFeatures& features) {
  if (features.shifted) return features.deterministic ? "deterministic, shifted" : "shifted";
  return features.deterministic ? "deterministic" : "";
}

/// Blocks of a head's rows, of which the longest sequence has `length`: in all sequences together.
/// Packed ones are as one, see PackedBlocks.
std::int64_t blocks_of_all(const Problem& problem, std::int64_t length, std::int64_t total,
                           int block) {
  return problem.varlen() ? total / block + problem.batch
                          : problem.batch * blocks_of(length, block);
}
std::int64_t query_blocks(const Problem& problem, const HopperBackwardShape& shape) {
  return blocks_of_all(problem, problem.seqlen_q, problem.total_q(), shape.block_queries);
}
std::int64_t key_blocks(const Problem& problem, const HopperBackwardShape& shape) {
  const int together = shape.blocks_together();
  return together *
         blocks_of_all(problem, problem.keys(), problem.total_k(), together * shape.block_keys());
}

/// Key heads whose blocks start in turns, where blocks of a head wait for each other. The next of a
/// head should start two blocks of queries later than the one before, which is about as long as it
/// takes to pass a turn: then it seldom waits. More than eight heads are too many for the cache.
/// Under a causal mask blocks are of different lengths and take turns as they come.
int heads_of_section(const driver::Device& device, const Problem& problem,
                     const HopperBackwardConfig& config) {
  constexpr std::int64_t kSteps = 2;
  constexpr std::int64_t kMostHeads = 8;
  if (!config.features.deterministic || config.features.window_right) return 1;
  const std::int64_t steps = problem.group() * query_blocks(problem, config.shape) / problem.batch;
  const std::int64_t wanted = kSteps * device.multiprocessors() / std::max<std::int64_t>(steps, 1);
  const std::int64_t heads = problem.batch * problem.kv_heads();
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, std::min(heads, kMostHeads)));
}

jit::Tunable tunable(const driver::Device& device, const Problem& problem,
                     const HopperBackwardFeatures& features) {
  return {.device = device,
          .kernel = "hopper_backward",
          .source = "kernels/hopper_backward/kernel.cu",
          .options = options_text(features),
          .problem = problem};
}

Chosen<HopperBackwardConfig> config_of(const driver::Device& device, const Problem& problem,
                                       const PlanOptions& options, bool shifted) {
  const HopperBackwardFeatures features = features_of(problem, options, shifted);
  const auto read = [&](std::string_view text) { return parse_variant(text, features); };
  return choose_variant(choose_hopper_backward(features), options.variant, read, kVariantForm,
                        tunable(device, problem, features));
}

constexpr std::int64_t kMaxDim = kCandidates.back().dim;

}  // namespace

bool takes(const Problem& problem, const jit::Architecture& architecture) {
  constexpr std::int64_t kMost = std::int64_t{1} << 29;
  const bool half = problem.dtype == DType::bf16 || problem.dtype == DType::fp16;
  // A logit's derivative is told from its probability, for which a tiny cap leaves too few digits.
  const bool told = problem.softcap == 0 || problem.softcap >= 1;
  // With a single key dq and dk are zero to the last bit, if the gradients of probabilities are
  // multiplied as they were for the statistics.
  const Window window = problem.effective_window();
  const bool one_key = problem.keys() <= 1 || (window.left == 0 && window.right == 0);
  const bool some = problem.batch > 0 && problem.seqlen_q > 0 && !one_key;
  const bool biased = !problem.bias || problem.keys() % 8 == 0;
  const HopperBackwardShape shape = choose_hopper_backward(features_of(problem, {}, false)).shape;
  return architecture.major == 9 && architecture.specific && problem.pass == Pass::backward &&
         half && biased && told && some && problem.dim <= kMaxDim &&
         problem.value_dim() <= kMaxDim && problem.total_q() < kMost && problem.total_k() < kMost &&
         problem.heads * query_blocks(problem, shape) < kMost &&
         problem.heads * key_blocks(problem, shape) < kMost;
}

bool Backward::shifts(const Problem& problem, const PlanOptions& options) {
  const HopperBackwardFeatures features = features_of(problem, options, true);
  // What is loaded has few registers to clear it with beside a search for sequences or windows, and
  // the gradients of a bias are computed from aligned rows. Some dims would need wider tiles than
  // copies do, for which dk and dv have no room beside each other.
  const bool has_room = !features.window_left && !features.variable_length && !features.bias;
  const auto of_copies = choose_hopper_backward(features_of(problem, options, false)).shape;
  return has_shifted_heads(problem) && has_room && most_columns(features) <= kMaxDim &&
         is_better_than_copies(problem.keys(), most_columns(features)) &&
         choose_hopper_backward(features).shape == of_copies;
}

bool Backward::takes(const HopperBackwardFeatures& features, const Tensors& tensors) {
  if (tensors.bias.given() && !has_boxes(bias_rows(tensors.bias))) return false;
  if (features.shifted) {
    return has_dense_heads(tensors.q) && has_dense_heads(tensors.k) && has_dense_heads(tensors.v) &&
           has_dense_heads(tensors.dout) && has_dense_heads(tensors.dq);
  }
  const auto lies_well = [](const TensorView& gradient, int dim) {
    return dim % kChunkElements != 0 || has_boxes(gradient);
  };
  return has_boxes(tensors.q) && has_boxes(tensors.k) && has_boxes(tensors.v) &&
         has_boxes(tensors.dout) && lies_well(tensors.dk, features.dim) &&
         lies_well(tensors.dv, features.value_dim) &&
         (features.dim % kChunkElements != 0 || rows_aligned(tensors.dq));
}

std::vector<std::string> variants(const Problem& problem, const PlanOptions& options) {
  const HopperBackwardFeatures features =
      features_of(problem, options, Backward::shifts(problem, options));
  return variant_texts(choose_hopper_backward(features).shape, worth_trying(features),
                       variant_text);
}

jit::KernelDescription describe(const Problem& problem, const PlanOptions& options) {
  const HopperBackwardFeatures features =
      features_of(problem, options, Backward::shifts(problem, options));
  if (options.variant.empty()) return description(choose_hopper_backward(features));
  const auto config = parse_variant(options.variant, features);
  if (!config) refuse_variant(options.variant, kVariantForm);
  return description(*config);
}

void keep_variant(const driver::Device& device, const Problem& problem, const PlanOptions& options,
                  const std::optional<TunedVariant>& tuned) {
  const HopperBackwardFeatures features =
      features_of(problem, options, Backward::shifts(problem, options));
  jit::keep_tuned_variant(tunable(device, problem, features), tuned);
}

Backward::Arrays::Arrays(const Problem& problem, const HopperBackwardConfig& config,
                         int heads_of_section) {
  constexpr auto kCount = static_cast<std::int64_t>(sizeof(unsigned));
  const auto& [features, shape] = config;
  const std::int64_t tiles = problem.heads * query_blocks(problem, shape);
  const std::int64_t sum_bytes =
      tiles * tile_floats(config) * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t key_heads = problem.batch * problem.kv_heads();
  WorkspacePlan plan;
  plan.take(problem.heads * problem.total_q() * static_cast<std::int64_t>(sizeof(RowStatistics)));
  const int writers = shape.slice_writers() * shape.blocks_together();
  turns = plan.take(features.deterministic ? tiles * writers * kCount : 0);
  cleared = plan.take(features.finishes ? key_heads * kCount : 0);
  added = plan.take(features.finishes ? key_heads * kCount : 0);
  not_finite = plan.take(kCount);
  sums = plan.take(sum_bytes);
  cleared_bytes = sums - turns +
                  static_cast<std::size_t>(
                      features.finishes ? sum_bytes / key_heads * heads_of_section : sum_bytes);
  bytes = plan.bytes();
}

std::size_t Backward::workspace_bytes(const driver::Device& device, const Problem& problem,
                                      const PlanOptions& options, bool shifted) {
  const HopperBackwardConfig config = config_of(device, problem, options, shifted).config;
  return Arrays(problem, config, heads_of_section(device, problem, config)).bytes;
}

Backward::Backward(const driver::Device& device, const Problem& problem, const PlanOptions& options,
                   bool shifted)
    : Backward(device, problem, options, config_of(device, problem, options, shifted)) {}

Backward::Backward(const driver::Device& device, const Problem& problem, const PlanOptions& options,
                   const Chosen<HopperBackwardConfig>& chosen)
    : problem_(problem),
      config_(chosen.config),
      tuned_(chosen.tuned()),
      statistics_(device, problem,
                  features_of_rows(problem, options, chosen.config.features.shifted)),
      kernel_(jit::load(device, description(config_))),
      finish_(jit::load(device, finish_description(statistics_.rows().config, config_))),
      query_blocks_(query_blocks(problem, config_.shape)),
      key_blocks_(key_blocks(problem, config_.shape)),
      heads_of_section_(heads_of_section(device, problem, config_)),
      arrays_(problem, config_, heads_of_section_) {
  if (chosen.asked()) refuse_spills(variant_text(config_.shape), kernel_->resources());
  if (problem.bias) bias_gradients_ = {device, portable_backward::features_of(problem, options)};
}

TuningRecord Backward::tuning() const {
  const HopperBackwardShape& shape = config_.shape;
  return {{"kernel", "hopper_backward"},
          {"tile", concat(shape.block_queries, "x", shape.block_keys())},
          {"blocks", shape.in_pairs                  ? "in pairs"
                     : shape.blocks_at_a_time() == 2 ? "two at a time"
                                                     : "alone"},
          {"heads", config_.features.shifted ? "within chunks" : "at chunks"},
          {"query slots", concat(shape.query_slots)},
          {"slices", concat(shape.slice_slots)},
          {"dq", config_.features.finishes ? "by its last block" : "by a kernel of its own"},
          {"registers", concat(kernel_->resources().front().registers)},
          {"shared", concat(shared_bytes(config_))},
          {"tuned", tuned_ ? "yes" : "no"},
          {"deterministic", config_.features.deterministic ? "yes" : "no"}};
}

PortableBackwardParams Backward::row_params(const Tensors& tensors, void* workspace) const {
  std::byte* const begin = aligned_workspace(workspace);
  PortableBackwardParams params = portable_backward::params_of(problem_, tensors);
  params.blocks = blocks_of_sequence(query_blocks_);
  params.statistics = reinterpret_cast<RowStatistics*>(begin);
  params.dq_sums = reinterpret_cast<float*>(begin + arrays_.sums);
  params.cleared = reinterpret_cast<float*>(begin + arrays_.turns);
  params.cleared_floats = static_cast<std::int64_t>(arrays_.cleared_bytes / sizeof(float));
  return params;
}

int Backward::blocks_of_sequence(std::int64_t of_all) const {
  return static_cast<int>(problem_.varlen() ? of_all : of_all / problem_.batch);
}

HopperBackwardParams Backward::params(const PortableBackwardParams& rows, void* workspace) const {
  std::byte* const begin = aligned_workspace(workspace);
  HopperBackwardParams params{};
  params.statistics = rows.statistics;
  params.dq_sums = rows.dq_sums;
  params.turns = reinterpret_cast<unsigned*>(begin + arrays_.turns);
  params.cleared = reinterpret_cast<unsigned*>(begin + arrays_.cleared);
  params.added = reinterpret_cast<unsigned*>(begin + arrays_.added);
  params.not_finite = reinterpret_cast<unsigned*>(begin + arrays_.not_finite);
  params.cu_seqlens_q = rows.cu_seqlens_q;
  params.cu_seqlens_k = rows.cu_seqlens_k;
  params.alibi_slopes = rows.alibi_slopes;
  params.dq = rows.dq;
  params.dk = rows.dk;
  params.dv = rows.dv;
  params.dq_strides = rows.dq_strides;
  params.dk_strides = rows.dk_strides;
  params.dv_strides = rows.dv_strides;
  params.bias_strides = rows.bias_strides;
  params.alibi_sequence_stride = rows.alibi_sequence_stride;
  params.rows = rows.rows;
  params.window_left = window_limit<int>(rows.window_left);
  params.window_right = window_limit<int>(rows.window_right);
  params.sequences = rows.sequences;
  params.heads = rows.heads;
  params.heads_per_key_head = rows.heads_per_key_head;
  params.seqlen_q = rows.seqlen_q;
  params.seqlen_k = rows.seqlen_k;
  params.query_blocks = rows.blocks;
  params.key_blocks = blocks_of_sequence(key_blocks_);
  params.heads_of_section = heads_of_section_;
  set_dropout(params, problem_);
  params.scale = rows.scale;
  params.unit = rows.scale * std::numbers::log2e_v<float>;
  if (config_.features.softcap) {
    params.scale_by_cap = rows.scale / rows.softcap;
    params.cap_unit = rows.softcap * std::numbers::log2e_v<float>;
  }
  return params;
}

abi::TensorMap Backward::map(const TensorView& view, int box_rows) const {
  return config_.features.shifted ? row_map(view, box_rows) : tensor_map(view, box_rows);
}

abi::TensorMap Backward::gradient_map(const TensorView& gradient, int dim) const {
  constexpr int kWarpgroupRows = 64;
  const bool in_boxes = !config_.features.shifted && dim % kChunkElements == 0;
  return in_boxes ? tensor_map(gradient, kWarpgroupRows) : abi::TensorMap{};
}

abi::TensorMap Backward::bias_map(const Tensors& tensors) const {
  const auto& [features, shape] = config_;
  if (!features.bias) return {};
  return tensor_map(bias_rows(tensors.bias), features.bias_per_query ? shape.block_queries : 1);
}

void Backward::run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
  const std::int64_t most_finishers = config_.features.finishes ? 256 : 4096;  // if at all needed
  const PortableBackwardParams rows = row_params(tensors, workspace);
  const HopperBackwardParams values = params(rows, workspace);
  const HopperBackwardShape& shape = config_.shape;
  statistics_.compute(problem_, rows, stream);
  if (rows.dsinks != nullptr)
    statistics_.rows().launch("portable_sink_gradients", problem_.heads, 1, 0, rows, stream);
  driver::launch(kernel_->function("hopper_backward"),
                 {.grid = {.x = static_cast<unsigned>(key_blocks_ * problem_.kv_heads())},
                  .block = {.x = static_cast<unsigned>(config_.threads())},
                  .cluster = {.x = static_cast<unsigned>(shape.blocks_together())},
                  .dynamic_shared_bytes = shared_bytes(config_),
                  .overlaps_previous = driver::kernels_may_overlap()},
                 stream, map(tensors.q, shape.block_queries), map(tensors.k, shape.block_keys()),
                 map(tensors.v, shape.block_keys()), map(tensors.dout, shape.block_queries),
                 gradient_map(tensors.dk, config_.features.dim),
                 gradient_map(tensors.dv, config_.features.value_dim), bias_map(tensors), values);
  driver::launch(finish_->function("hopper_finish"),
                 {.grid = {.x = static_cast<unsigned>(
                               std::min(most_finishers, problem_.heads * query_blocks_))},
                  .block = {.x = kFinishThreads},
                  .dynamic_shared_bytes = finish_shared_bytes(config_),
                  .overlaps_previous = driver::kernels_may_overlap()},
                 stream, rows, static_cast<const unsigned*>(values.not_finite));
  if (rows.dbias != nullptr) bias_gradients_.compute(problem_, rows, stream);
}

}  // namespace strobe::cuda::hopper_backward
