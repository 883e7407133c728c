#pragma once
// How the kernel is compiled for a problem: what it computes and how it is cut.

#include <algorithm>
#include <array>

#include "kernels/configuration.h"

namespace strobe::cuda {

/// What the kernel computes.
struct HopperBackwardFeatures {
  Arithmetic arithmetic = Arithmetic::bf16;  ///< bf16 or fp16
  int dim = 128;                             ///< of queries and keys, up to 256
  int value_dim = 128;                       ///< likewise
  bool shifted = false;  ///< heads may begin within chunks of 16 bytes, see HeadsWithOthers
  bool window_left = false;
  bool window_right = false;  ///< also if causal
  bool variable_length = false;
  bool softcap = false;
  bool bias = false;
  bool bias_per_query = false;  ///< else one row serves all
  bool alibi = false;
  bool dropout = false;
  bool deterministic = false;  ///< dq is bit-equal in every run; dk and dv always are
  bool finishes = false;       ///< dq is converted by whoever adds to it last, see HeadSums
};

/// Columns of tiles of keys, and of values.
constexpr int key_columns(const HopperBackwardFeatures& features) {
  return tile_columns(features.dim, features.shifted);
}
constexpr int value_columns(const HopperBackwardFeatures& features) {
  return tile_columns(features.value_dim, features.shifted);
}
constexpr int most_columns(const HopperBackwardFeatures& features) {
  return std::max(key_columns(features), value_columns(features));
}

/// What a block of queries has to have registers for besides: so many of softcap, bias, ALiBi and
/// dropout.
constexpr int extras_of(const HopperBackwardFeatures& features) {
  return features.softcap + features.bias + features.alibi + features.dropout;
}

/// Whether the last block of a head to add to the sums of dq can convert them. Blocks that have
/// nothing to do would not count. A few columns more than 128 gain by it where nothing is masked
/// and nothing else is asked, wider heads do not.
constexpr bool may_finish(const HopperBackwardFeatures& features) {
  const bool plain = !features.window_right && extras_of(features) == 0;
  return !features.window_left && !features.variable_length &&
         most_columns(features) <= (plain ? 136 : 128);
}

/// How it is cut. Two warpgroups compute: they have 64 keys each, or have the same 64 and one has
/// dk, the other dv and dq. Or there is one, and a multiprocessor has two thread blocks at a time:
/// what one of them loads first and stores last overlaps with products of the other.
struct HopperBackwardShape {
  int warpgroups = 2;  ///< that compute
  int block_queries = 64;
  bool splits_gradients = false;
  int values_first = 0;   ///< queries whose share of dv is multiplied before there are gradients of
                          ///< scores, as far as registers suffice for both; not if split
  int query_slots = 2;    ///< in shared memory; dout has two
  int slice_slots = 1;    ///< of a warpgroup that has dq, for what is on its way to the sums; with
                          ///< none it adds to them itself
  bool in_pairs = false;  ///< if split: two thread blocks with keys that follow each other run
                          ///< beside each other, and each adds half of the columns of dq for both

  bool operator==(const HopperBackwardShape&) const = default;

  constexpr int block_keys() const { return splits_gradients ? 64 : 64 * warpgroups; }
  constexpr int blocks_together() const { return in_pairs ? 2 : 1; }
  constexpr int blocks_at_a_time() const { return 2 / warpgroups; }
  constexpr int slice_writers() const { return splits_gradients ? 1 : warpgroups; }
};

struct HopperBackwardConfig {
  HopperBackwardFeatures features{};
  HopperBackwardShape shape{};

  constexpr int threads() const { return (1 + shape.warpgroups) * 128; }

  /// Registers of a thread: a block begins with as many for each of its threads, and those of the
  /// warpgroup that loads are handed to the others.
  constexpr int registers() const {
    return registers_of_a_thread(threads(), shape.blocks_at_a_time());
  }
  static constexpr int kProducerRegisters = 24;
  constexpr int consumer_registers() const { return shape.warpgroups == 1 ? 232 : 240; }
};

namespace hopper_backward {

/// A way to cut that serves dims up to `dim`, and has registers for so many of softcap, bias, ALiBi
/// and dropout.
struct Candidate {
  int dim;
  int extras;
  HopperBackwardShape shape;

  constexpr bool serves(const HopperBackwardFeatures& features) const {
    return most_columns(features) <= dim && extras_of(features) <= extras &&
           divides_slices(features) && (!shape.in_pairs || suits_pairs(features));
  }

  /// What is dropped of the probabilities is known with the gradients of scores.
  constexpr HopperBackwardShape shape_for(const HopperBackwardFeatures& features) const {
    HopperBackwardShape fitting = shape;
    if (features.dropout) fitting.values_first = 0;
    return fitting;
  }

  /// Whether warpgroups that divide the slices of dq have as many each: one would otherwise wait
  /// for a slice that nobody makes.
  constexpr bool divides_slices(const HopperBackwardFeatures& features) const {
    return shape.slice_writers() == 1 || shape.block_queries > 64 || key_columns(features) > 64;
  }

  /// Whether there are slices of dq for both blocks of a pair. Packed sequences would have to begin
  /// with the first of one.
  static constexpr bool suits_pairs(const HopperBackwardFeatures& features) {
    return key_columns(features) > 128 && !features.variable_length;
  }
};

// dk and dv take half of their dims in registers of a thread, or half of the larger if split;
// scores and their gradients take block_queries, and what comes first of dv a quarter of its own.
inline constexpr std::array kCandidates = {
    Candidate{64, 0, {.block_queries = 128, .query_slots = 3}},
    Candidate{64, 0, {.warpgroups = 1, .values_first = 64, .query_slots = 3}},
    Candidate{
        64, 4, {.block_queries = 64, .splits_gradients = true, .query_slots = 3, .slice_slots = 3}},
    Candidate{128, 1, {.block_queries = 64, .values_first = 64, .query_slots = 3}},
    Candidate{128, 1, {.block_queries = 64, .values_first = 64, .query_slots = 2}},  // and a bias
    Candidate{136, 0, {.block_queries = 64, .values_first = 32}},
    Candidate{256,
              3,
              {.block_queries = 64, .splits_gradients = true, .slice_slots = 0, .in_pairs = true}},
    Candidate{192, 4, {.block_queries = 64, .splits_gradients = true, .slice_slots = 3}},
    Candidate{256, 4, {.block_queries = 64, .splits_gradients = true, .slice_slots = 1}},
};

/// Slices of a tile of dq, see QuerySlices. Warpgroups that compute the same have one each.
constexpr int slice_count(const HopperBackwardConfig& config) {
  constexpr int kPanel = 64;
  const auto& [features, shape] = config;
  if (!shape.splits_gradients) return shape.warpgroups;
  return (key_columns(features) + kPanel - 1) / kPanel;
}

/// Columns of the widest.
constexpr int slice_columns(const HopperBackwardConfig& config) {
  constexpr int kPanel = 64;
  const auto& [features, shape] = config;
  const int columns = key_columns(features);
  if (shape.block_queries > 64) return columns;
  return std::max(std::min(columns, kPanel), columns - (slice_count(config) - 1) * kPanel);
}

/// Floats of the sums of dq for a block of queries of a head.
constexpr int tile_floats(const HopperBackwardConfig& config) {
  return config.shape.block_queries * key_columns(config.features);
}

}  // namespace hopper_backward

/// What layout.cuh plans.
constexpr int shared_bytes(const HopperBackwardConfig& config) {
  constexpr int kControl = 512;
  constexpr int kStages = 2;  // of dout, scores and statistics
  const auto& [features, shape] = config;
  const int rows = shape.block_keys() + shape.query_slots * shape.block_queries;
  const int value_rows = shape.block_keys() + kStages * shape.block_queries;
  // In pairs one of their own, one of the other block's, and half of the other's keys.
  const int scores = kStages * shape.block_queries * shape.block_keys() * 2;
  constexpr int kPanelRowBytes = 128;
  const int panels = tile_row_bytes(key_columns(features)) / kPanelRowBytes;
  const int partner_keys =
      shape.in_pairs ? (panels + 1) / 2 * shape.block_keys() * kPanelRowBytes : 0;
  const int slices =
      shape.slice_writers() * shape.slice_slots * 64 * hopper_backward::slice_columns(config) * 4;
  const int statistics = kStages * shape.block_queries * 8;
  const int bias_rows = !features.bias ? 0 : features.bias_per_query ? shape.block_queries : 8;
  const int bias = kStages * bias_rows * tile_row_bytes(shape.block_keys());
  return rows * tile_row_bytes(key_columns(features)) +
         value_rows * tile_row_bytes(value_columns(features)) + scores + partner_keys + slices +
         bias + statistics + kControl;
}

/// Whether a multiprocessor has as much for each of its blocks.
constexpr bool fits(const HopperBackwardConfig& config) {
  constexpr SharedMemory kMemory = shared_memory_of(90);
  constexpr int kReserved = kMemory.per_multiprocessor - kMemory.per_block;  // for each block
  const int of_each = kMemory.per_multiprocessor / config.shape.blocks_at_a_time() - kReserved;
  return shared_bytes(config) <= of_each;
}

inline HopperBackwardConfig choose_hopper_backward(const HopperBackwardFeatures& features) {
  // Faster where the copy unit has enough to do.
  const bool adds_itself = most_columns(features) > 128;
  HopperBackwardConfig config{features, {}};
  for (const auto& candidate : hopper_backward::kCandidates) {
    config.shape = candidate.shape_for(features);
    if (adds_itself) config.shape.slice_slots = 0;
    if (candidate.serves(features) && fits(config)) break;
  }
  return config;
}

/// Its choices as the kernel knows them.
inline jit::KernelDescription description(const HopperBackwardConfig& config) {
  const auto& [features, shape] = config;
  return {.name = "hopper_backward",
          .source = "kernels/hopper_backward/kernel.cu",
          .entries = {"hopper_backward"},
          .constants = {arithmetic_constant(features.arithmetic),
                        {"kDim", features.dim},
                        {"kValueDim", features.value_dim},
                        {"kShifted", features.shifted},
                        {"kKeyColumns", key_columns(features)},
                        {"kValueColumns", value_columns(features)},
                        {"kWindowLeft", features.window_left},
                        {"kWindowRight", features.window_right},
                        {"kVariableLength", features.variable_length},
                        {"kSoftcap", features.softcap},
                        {"kBias", features.bias},
                        {"kBiasPerQuery", features.bias_per_query},
                        {"kAlibi", features.alibi},
                        {"kDropout", features.dropout},
                        {"kDeterministic", features.deterministic},
                        {"kFinishes", features.finishes},
                        {"kWarpgroups", shape.warpgroups},
                        {"kBlocksAtATime", shape.blocks_at_a_time()},
                        {"kSplitsGradients", shape.splits_gradients},
                        {"kInPairs", shape.in_pairs},
                        {"kValuesFirst", shape.values_first},
                        {"kQuerySlots", shape.query_slots},
                        {"kBlockQueries", shape.block_queries},
                        {"kBlockKeys", shape.block_keys()},
                        {"kSliceWriters", shape.slice_writers()},
                        {"kSlices", hopper_backward::slice_count(config)},
                        {"kSliceSlots", shape.slice_slots},
                        {"kTileFloats", hopper_backward::tile_floats(config)},
                        {"kProducerRegisters", config.kProducerRegisters},
                        {"kConsumerRegisters", config.consumer_registers()}},
          .threads = config.threads(),
          .dynamic_shared_bytes = shared_bytes(config),
          .max_registers = config.registers()};
}

}  // namespace strobe::cuda
