#include "cuda/kernels/hopper_forward/hopper_forward.h"

#include <algorithm>
#include <numbers>

#include "core/text.h"
#include "cuda/driver/launch.h"
#include "cuda/driver/memory.h"
#include "cuda/kernels/hopper_forward/variants.h"
#include "cuda/kernels/hopper_operands.h"
#include "cuda/kernels/operands.h"

namespace strobe::cuda::hopper_forward {
namespace {

constexpr std::int64_t kMaxDim = 256;
constexpr int kWarpgroupRows = 64;
constexpr int kWarpRows = 16;

HopperForwardFeatures features_of(const Problem& problem) {
  auto features = hopper_features<HopperForwardFeatures>(problem);
  features.positive_scale = problem.softmax_scale() > 0;
  features.sinks = problem.sinks;
  return features;
}

std::int64_t query_blocks(const Problem& problem, const HopperForwardConfig& config) {
  return (problem.seqlen_q + config.block_queries() - 1) / config.block_queries();
}

/// Of packed sequences, whose lengths are known on the device alone, at most so many.
std::int64_t tiles(const Problem& problem, const HopperForwardConfig& config) {
  const std::int64_t all = problem.batch * query_blocks(problem, config);
  if (!problem.varlen()) return all * problem.heads;
  return std::min(all, problem.total_q() / config.block_queries() + problem.batch) * problem.heads;
}

/// Sequences of different lengths count as so many of their mean.
Work work_of(const Problem& problem, int multiprocessors) {
  const Window window = problem.effective_window();
  std::int64_t keys = (problem.total_k() + problem.batch - 1) / problem.batch;
  if (window.left >= 0 && window.right >= 0) keys = std::min(keys, window.left + 1 + window.right);
  return {.queries = (problem.total_q() + problem.batch - 1) / problem.batch,
          .keys = keys,
          .heads = problem.batch * problem.heads,
          .multiprocessors = multiprocessors};
}

/// Where boxes of heads that begin within chunks best begin: at sectors, which memory is read by,
/// if heads allow it. Narrow tiles would have eight columns more for it.
int suited_head_unit(const Problem& problem) {
  constexpr int kSectorElements = 16;
  constexpr std::int64_t kWide = 128;
  const bool wide = std::max(problem.dim, problem.value_dim()) > kWide;
  return wide && has_head_periods(problem, kSectorElements) ? kSectorElements : kChunkElements;
}

HopperForwardFeatures features_of(const Problem& problem, const PlanOptions& options,
                                  const Work& work, bool shifted) {
  HopperForwardFeatures features = features_of(problem);
  features.shifted = shifted;
  if (shifted) features.head_unit = suited_head_unit(problem);
  features.reference = choose_reference(features, work, options.reference);
  return features;
}

constexpr std::string_view options_text(const HopperForwardFeatures& features) {
  const bool fixed = features.reference == Reference::fixed;
  if (features.shifted) return fixed ? "reference fixed, shifted" : "shifted";
  return fixed ? "reference fixed" : "";
}

constexpr const char* output_text(OutputWay way) {
  switch (way) {
    case OutputWay::by_queries:
      return "by the slot of queries";
    case OutputWay::by_slot:
      return "by a slot of its own";
    case OutputWay::from_registers:
      return "from registers";
  }
  return "";
}

constexpr const char* order_text(TileOrder order) {
  switch (order) {
    case TileOrder::one_by_one:
      return "in order";
    case TileOrder::in_pairs:
      return "in pairs";
    case TileOrder::there_and_back:
      return "there and back";
    case TileOrder::on_demand:
      return "on demand";
  }
  return "";
}

constexpr const char* heads_text(const HopperForwardFeatures& features) {
  if (!features.shifted) return "at chunks";
  return features.head_unit == kChunkElements ? "within chunks" : "within sectors";
}

jit::Tunable tunable(const driver::Device& device, const Problem& problem,
                     const HopperForwardFeatures& features) {
  return {.device = device,
          .kernel = "hopper_forward",
          .source = "kernels/hopper_forward/kernel.cu",
          .options = options_text(features),
          .problem = problem};
}

Chosen<HopperForwardConfig> config_of(const driver::Device& device, const Problem& problem,
                                      const PlanOptions& options, bool shifted) {
  const Work work = work_of(problem, device.multiprocessors());
  const HopperForwardFeatures features = features_of(problem, options, work, shifted);
  const auto read = [&](std::string_view text) { return parse_variant(text, features, work); };
  return choose_variant(choose_hopper_forward(features, work), options.variant, read, kVariantForm,
                        tunable(device, problem, features));
}

/// Of dense tensors.
HopperForwardFeatures usual_features(const Problem& problem, const PlanOptions& options,
                                     const Work& work) {
  return features_of(problem, options, work, Forward::shifts(problem, options));
}

}  // namespace

bool takes(const Problem& problem, const jit::Architecture& architecture) {
  constexpr std::int64_t kMost = std::int64_t{1} << 29;
  const bool half = problem.dtype == DType::bf16 || problem.dtype == DType::fp16;
  const bool rows_in_chunks = !problem.bias || problem.keys() % 8 == 0;
  const bool some = problem.batch > 0 && problem.seqlen_q > 0 && problem.keys() > 0;
  const bool few = problem.seqlen_q < kMost && problem.keys() < kMost &&
                   tiles(problem, {}) < kMost &&
                   (!problem.varlen() || (problem.total_q() < kMost && problem.total_k() < kMost));
  return architecture.major == 9 && architecture.specific && problem.pass == Pass::forward &&
         half && rows_in_chunks && some && few && problem.dim <= kMaxDim &&
         problem.value_dim() <= kMaxDim;
}

bool Forward::shifts(const Problem& problem, const PlanOptions& options) {
  const Work work = work_of(problem, Work{}.multiprocessors);
  const HopperForwardFeatures features = features_of(problem, options, work, true);
  const auto of_copies = choose_hopper_forward(features_of(problem, options, work, false), work);
  return has_shifted_heads(problem) && has_head_periods(problem) &&
         most_columns(features) <= kMaxDim &&
         is_better_than_copies(problem.keys(), most_columns(features)) &&
         choose_hopper_forward(features, work).shape == of_copies.shape;
}

bool Forward::takes(const HopperForwardFeatures& features, const Tensors& tensors) {
  if (tensors.bias.given() && !has_boxes(bias_rows(tensors.bias))) return false;
  if (features.shifted) {
    return has_dense_heads(tensors.q) && has_dense_heads(tensors.k) && has_dense_heads(tensors.v);
  }
  return has_boxes(tensors.q) && has_boxes(tensors.k) && has_boxes(tensors.v) &&
         (!stores_whole_chunks(features) || has_boxes(tensors.out));
}

std::vector<std::string> variants(const Problem& problem, const PlanOptions& options,
                                  int multiprocessors) {
  const Work work = work_of(problem, multiprocessors);
  const HopperForwardFeatures features = usual_features(problem, options, work);
  const HopperForwardConfig usual = choose_hopper_forward(features, work);
  return variant_texts(usual.shape, worth_trying(features), variant_text);
}

jit::KernelDescription describe(const Problem& problem, const PlanOptions& options,
                                int multiprocessors) {
  const Work work = work_of(problem, multiprocessors);
  const HopperForwardFeatures features = usual_features(problem, options, work);
  if (options.variant.empty()) return description(choose_hopper_forward(features, work));
  const auto config = parse_variant(options.variant, features, work);
  if (!config) refuse_variant(options.variant, kVariantForm);
  return description(*config);
}

void keep_variant(const driver::Device& device, const Problem& problem, const PlanOptions& options,
                  const std::optional<TunedVariant>& tuned) {
  const Work work = work_of(problem, device.multiprocessors());
  jit::keep_tuned_variant(tunable(device, problem, usual_features(problem, options, work)), tuned);
}

Forward::Arrays::Arrays(const Problem& problem, const HopperForwardConfig& config) {
  WorkspacePlan plan;
  if (config.shape.order == TileOrder::on_demand) next_tile = plan.take(sizeof(unsigned));
  if (problem.varlen())
    tile_order = plan.take(static_cast<std::int64_t>(sizeof(SequenceTiles)) * (problem.batch + 1));
  bytes = plan.bytes();
}

std::size_t Forward::workspace_bytes(const driver::Device& device, const Problem& problem,
                                     const PlanOptions& options, bool shifted) {
  return Arrays(problem, config_of(device, problem, options, shifted).config).bytes;
}

Forward::Forward(const driver::Device& device, const Problem& problem, const PlanOptions& options,
                 bool shifted)
    : Forward(device, problem, config_of(device, problem, options, shifted)) {}

Forward::Forward(const driver::Device& device, const Problem& problem,
                 const Chosen<HopperForwardConfig>& chosen)
    : problem_(problem),
      config_(chosen.config),
      tuned_(chosen.tuned()),
      kernel_(jit::load(device, description(config_))),
      function_(kernel_->function("hopper_forward")),
      arrays_(problem, config_),
      blocks_(static_cast<int>(
          std::min<std::int64_t>(tiles(problem, config_), device.multiprocessors()))),
      paired_tiles_(config_.shape.order != TileOrder::in_pairs
                        ? 0
                        : tiles_in_pairs(static_cast<int>(tiles(problem, config_)),
                                         static_cast<int>(query_blocks(problem, config_)),
                                         blocks_)) {
  if (chosen.asked()) refuse_spills(variant_text(config_.shape), kernel_->resources());
  if (!problem.varlen()) return;
  order_kernel_ = jit::load(device, hopper_order());
  order_ = order_kernel_->function("hopper_order");
}

TuningRecord Forward::tuning() const {
  const HopperForwardShape& shape = config_.shape;
  return {{"kernel", "hopper_forward"},
          {"tile", concat(config_.block_queries(), "x", shape.block_keys)},
          {"warpgroups", concat(shape.warpgroups)},
          {"stages", concat(shape.stages)},
          {"key slots", concat(shape.key_slots())},
          {"query slots", concat(shape.query_slots)},
          {"tiles", order_text(shape.order)},
          {"output", output_text(shape.output_way)},
          {"heads", heads_text(config_.features)},
          {"reference", config_.features.reference == Reference::fixed ? "fixed" : "running"},
          {"registers", concat(kernel_->resources().front().registers)},
          {"shared", concat(shared_bytes(config_))},
          {"tuned", tuned_ ? "yes" : "no"}};
}

HopperForwardParams Forward::params(const Tensors& tensors, std::byte* workspace) const {
  constexpr std::int64_t kCacheShare = std::int64_t{64} << 20;
  HopperForwardParams params{};
  set_operands(params, tensors, problem_.varlen());
  set_problem(params, problem_);
  set_dropout(params, problem_);
  if (tensors.bias.given()) {
    params.bias = tensors.bias.data;
    params.bias_strides = bias_strides(tensors.bias);
  }
  params.next_tile = reinterpret_cast<unsigned*>(workspace + arrays_.next_tile);
  params.order = reinterpret_cast<const SequenceTiles*>(workspace + arrays_.tile_order);
  params.heads_per_key_head = static_cast<int>(problem_.group());
  params.query_blocks = static_cast<int>(query_blocks(problem_, config_));
  params.heads_per_section =
      heads_per_section(config_.features, problem_.keys(), params.heads_per_key_head,
                        problem_.batch * problem_.heads, kCacheShare);
  params.tiles = static_cast<int>(tiles(problem_, config_));
  params.paired_tiles = paired_tiles_;
  params.scale = static_cast<float>(problem_.softmax_scale());
  params.unit =
      (makes_logits(config_.features) ? 1.0F : params.scale) * std::numbers::log2e_v<float>;
  return params;
}

void Forward::put_in_order(const HopperForwardParams& of_tiles, SequenceTiles* order,
                           abi::Stream stream) const {
  HopperOrderParams params{};
  params.cu_seqlens_q = of_tiles.cu_seqlens_q;
  params.cu_seqlens_k = of_tiles.cu_seqlens_k;
  params.order = order;
  params.next_tile = of_tiles.next_tile;
  params.sequences = of_tiles.sequences;
  params.heads = of_tiles.heads;
  params.block_queries = config_.block_queries();
  driver::launch(order_, {.block = {.x = kHopperOrderThreads}}, stream, params);
}

abi::TensorMap Forward::map(const TensorView& view, int box_rows, int box_columns) const {
  return config_.features.shifted ? row_map(view, box_rows, config_.features.head_unit, box_columns)
                                  : tensor_map(view, box_rows, box_columns);
}

Forward::TileMaps Forward::maps(const TensorView& view, int box_rows, int columns) const {
  TileMaps maps{.whole = map(view, box_rows, kPanelColumns)};
  if (ends_narrow(columns)) maps.narrow = map(view, box_rows, kNarrowColumns);
  return maps;
}

Forward::TileMaps Forward::output_maps(const TensorView& out) const {
  if (!stores_whole_chunks(config_.features)) return {};
  return maps(out, kWarpRows, value_columns(config_.features));
}

abi::TensorMap Forward::bias_map(const Tensors& tensors) const {
  if (!config_.features.bias) return {};
  return tensor_map(bias_rows(tensors.bias), config_.features.bias_per_query ? kWarpgroupRows : 1);
}

void Forward::run(const Tensors& tensors, void* workspace, abi::Stream stream) const {
  std::byte* const arrays = aligned_workspace(workspace);
  const HopperForwardParams values = params(tensors, arrays);
  const int columns = key_columns(config_.features);
  if (problem_.varlen())
    put_in_order(values, reinterpret_cast<SequenceTiles*>(arrays + arrays_.tile_order), stream);
  else if (config_.shape.order == TileOrder::on_demand)
    driver::fill_async(values.next_tile, 0, sizeof(unsigned), stream);
  driver::launch(function_,
                 {.grid = {.x = static_cast<unsigned>(blocks_)},
                  .block = {.x = static_cast<unsigned>(config_.threads())},
                  .dynamic_shared_bytes = shared_bytes(config_)},
                 stream, maps(tensors.q, kWarpgroupRows, columns),
                 maps(tensors.k, config_.shape.block_keys, columns),
                 TileMaps{.whole = map(tensors.v, config_.shape.block_keys, kPanelColumns)},
                 output_maps(tensors.out), bias_map(tensors), values);
}

}  // namespace strobe::cuda::hopper_forward
