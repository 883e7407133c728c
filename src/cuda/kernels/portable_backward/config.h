#pragma once
// How the kernels of the backward pass are compiled for a problem: what they compute and how they
// are cut.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/tile_pitch.cuh"
#include "kernels/configuration.h"

namespace strobe::cuda {

/// The kernels that compute products. What goes over rows alone, rows.cu, takes the configuration
/// of the first.
enum class BackwardKernel {
  key_gradients,    ///< dk and dv, and dq unless deterministic; a block owns keys
  query_gradients,  ///< dq if deterministic; a block owns queries. Also exact_statistics.cu
  bias_gradients,   ///< a block owns a part of the bias
};

/// What is computed. Everything that is off costs nothing.
struct PortableBackwardFeatures {
  Arithmetic arithmetic = Arithmetic::bf16;
  int dim = 128;
  int value_dim = 128;
  bool window_left = false;
  bool window_right = false;  ///< also if causal
  bool variable_length = false;
  bool softcap = false;
  bool alibi = false;
  bool bias = false;
  bool dropout = false;
  bool aligned = true;         ///< rows that pass by begin at multiples of 16 bytes
  bool deterministic = false;  ///< dq is bit-equal in every run, for two more products
};

/// How it is cut. Warps divide a block of scores, and the three gradients, each in its own way.
struct PortableBackwardShape {
  int block_queries = 64;
  int block_keys = 128;
  int warps = 8;
  int score_query_warps = 2;  ///< warps along the queries of a block of scores, the rest along keys
  int key_warps = 4;          ///< warps along the keys of dk and dv, the rest along columns
  int query_warps = 2;        ///< warps along the queries of dq, the rest along columns
  int tile_slots = 2;         ///< for the rows that pass by, 1 or 2
  int steps_at_once = 4;      ///< of a product, that are unrolled
  int blocks_per_multiprocessor = 1;  ///< that the registers are limited for
};

struct PortableBackwardConfig {
  BackwardKernel kernel = BackwardKernel::key_gradients;
  PortableBackwardFeatures features{};
  PortableBackwardShape shape{};

  int threads() const { return shape.warps * 32; }
};

/// What the kernels lay out.
constexpr int shared_bytes(const PortableBackwardConfig& config) {
  const auto& [kernel, features, shape] = config;
  const int element = is_half(features.arithmetic) ? 2 : 4;
  const auto pitch = [&](int dim) { return tile_pitch(whole_steps(dim), element); };
  const int both = pitch(features.dim) + pitch(features.value_dim);
  const int queries = shape.block_queries * both;
  const int keys = shape.block_keys * both;
  const int scores = shape.block_queries * pitch(shape.block_keys);
  switch (kernel) {
    case BackwardKernel::key_gradients:
      return keys + 2 * scores + shape.tile_slots * queries;
    case BackwardKernel::query_gradients:
      return queries + scores + shape.tile_slots * keys;
    case BackwardKernel::bias_gradients:
      break;
  }
  return queries + keys + shape.score_query_warps * shape.block_keys * 4;
}

namespace portable_backward {

/// A way to cut that serves dims up to `dim`. The tile slots of its shape are the fewest that it is
/// worth choosing for. `plain`: it leaves no registers for more than scale and mask.
struct Candidate {
  int dim;
  PortableBackwardShape shape;
  bool plain = false;
};

constexpr PortableBackwardShape cut(int block_queries, int block_keys, int score_query_warps,
                                    int key_warps, int query_warps, int tile_slots = 2,
                                    int steps_at_once = 4) {
  return {.block_queries = block_queries,
          .block_keys = block_keys,
          .score_query_warps = score_query_warps,
          .key_warps = key_warps,
          .query_warps = query_warps,
          .tile_slots = tile_slots,
          .steps_at_once = steps_at_once};
}

// Shared memory bounds the kernel, so that a warp's share of every product is as near to a square
// as it gets: 32 keys × 64 columns of dk and of dv fill half of the registers.
inline constexpr std::array kHalfWide = {
    Candidate{64, cut(128, 128, 4, 4, 4, 2, 2), true}, Candidate{64, cut(64, 128, 2, 4, 2)},
    Candidate{128, cut(64, 128, 2, 4, 2), true},       Candidate{128, cut(32, 128, 2, 4, 2)},
    Candidate{144, cut(64, 128, 2, 4, 2), true},       Candidate{160, cut(32, 128, 2, 4, 2), true},
    Candidate{256, cut(64, 64, 2, 2, 2), true},        Candidate{256, cut(32, 64, 2, 2, 2)},
    Candidate{512, cut(32, 32, 2, 1, 2, 1)},
};
inline constexpr std::array kHalfNarrow = {
    Candidate{64, cut(32, 128, 2, 4, 2)},
    Candidate{128, cut(32, 64, 2, 2, 2)},
    Candidate{256, cut(32, 32, 2, 1, 2, 1)},
    Candidate{512, cut(16, 16, 1, 1, 1, 1)},
};
inline constexpr std::array kSingleWide = {
    Candidate{64, cut(64, 128, 2, 4, 2), true}, Candidate{64, cut(32, 128, 2, 4, 2)},
    Candidate{128, cut(32, 64, 2, 2, 2)},       Candidate{256, cut(32, 32, 2, 1, 2, 1)},
    Candidate{512, cut(16, 16, 1, 1, 1, 1)},
};
inline constexpr std::array kSingleNarrow = {
    Candidate{64, cut(32, 64, 2, 2, 2)},
    Candidate{128, cut(32, 32, 2, 1, 2, 1)},
    Candidate{512, cut(16, 16, 1, 1, 1, 1)},
};

/// Columns of dq that a warp adds up for all its queries, in tiles of 8.
constexpr int query_part_columns(const PortableBackwardConfig& config) {
  const int parts = config.shape.warps / config.shape.query_warps;
  return (config.features.dim + parts * 8 - 1) / (parts * 8) * 8;
}

/// Floats of a row of the sums of dq, however it is cut; see query_sums.cuh.
constexpr int query_sum_floats(const PortableBackwardFeatures& features) {
  return (features.dim + 7) / 8 * 8;
}

/// Whether four steps at once spill under a causal mask, tried with every multiple of 8: above 128,
/// and before where warps have different numbers of columns of dq. At 144 three do and four do not.
constexpr bool wants_fewer_steps(const PortableBackwardConfig& config) {
  const int columns = query_sum_floats(config.features);
  const bool unequal = columns % query_part_columns(config) != 0;
  return columns > 128 ? columns != 144 : columns > 112 && unequal;
}

/// Whether every second warp adds to dq while the others multiply, and they then change over: where
/// registers suffice, as they do if all warps have the same number of columns.
constexpr bool adds_in_turns(const PortableBackwardConfig& config) {
  const int columns = query_sum_floats(config.features);
  return columns <= 128 && columns % query_part_columns(config) == 0;
}

/// Queries for keys, and keys for queries.
constexpr PortableBackwardShape mirrored(const PortableBackwardShape& shape) {
  PortableBackwardShape other = shape;
  std::swap(other.block_queries, other.block_keys);
  std::swap(other.query_warps, other.key_warps);
  other.score_query_warps = std::min(shape.warps / shape.score_query_warps, shape.block_keys / 16);
  return other;
}

}  // namespace portable_backward

/// Whether more is done to a score than scale and mask.
constexpr bool needs_registers(const PortableBackwardFeatures& features) {
  return features.softcap || features.alibi || features.bias || features.dropout ||
         !features.aligned;
}

/// Rows of blocks that see at most so many keys have their statistics from exact_statistics.cu. On
/// longer ones the errors of the others are small beside those of the products.
constexpr int short_row(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::fp32:
      return std::numeric_limits<int>::max();
    case Arithmetic::tf32:
      return 512;
    default:
      return 128;
  }
}

/// Whether there may be such rows.
constexpr bool needs_exact_statistics(const PortableBackwardFeatures& features,
                                      std::int64_t seqlen_k) {
  return features.window_left || features.window_right || features.variable_length ||
         seqlen_k <= short_row(features.arithmetic);
}

/// The first candidate that fits. What fits nowhere, fp32 of dims above 368 in 99 KB, shared_bytes
/// tells.
inline PortableBackwardConfig choose_portable_backward(BackwardKernel kernel,
                                                       const PortableBackwardFeatures& features,
                                                       int architecture) {
  using namespace portable_backward;
  const SharedMemory memory = shared_memory_of(architecture);
  const bool wide = memory.per_block > 100 * 1024;
  const bool half = is_half(features.arithmetic);
  const std::span<const Candidate> candidates =
      wide ? (half ? std::span<const Candidate>(kHalfWide) : kSingleWide)
           : (half ? std::span<const Candidate>(kHalfNarrow) : kSingleNarrow);
  PortableBackwardConfig config{kernel, features, {}};
  for (const auto& candidate : candidates) {
    if (candidate.dim < std::max(features.dim, features.value_dim)) continue;
    if (candidate.plain && needs_registers(features)) continue;
    config.shape = candidate.shape;
    // The bounds of a window and of lengths take registers as well.
    int& steps = config.shape.steps_at_once;
    if (features.window_right && wants_fewer_steps(config)) steps = std::min(steps, 3);
    if (features.window_left || features.variable_length) steps = 2;
    if (features.arithmetic == Arithmetic::fp32) steps = 1;
    if (kernel == BackwardKernel::query_gradients) config.shape = mirrored(config.shape);
    for (int slots = 2; slots >= candidate.shape.tile_slots; --slots) {
      config.shape.tile_slots = slots;
      if (shared_bytes(config) <= memory.per_block) return config;
    }
  }
  return config;
}

/// A source of this folder with the choices as it knows them.
inline jit::KernelDescription description(const PortableBackwardConfig& config, const char* source,
                                          std::vector<std::string> entries) {
  const auto& [kernel, features, shape] = config;
  return {
      .name = std::string("portable_backward/") + source,
      .source = std::string("kernels/portable_backward/") + source + ".cu",
      .entries = std::move(entries),
      .constants = {arithmetic_constant(features.arithmetic),
                    {"kDim", features.dim},
                    {"kValueDim", features.value_dim},
                    {"kWindowLeft", features.window_left},
                    {"kWindowRight", features.window_right},
                    {"kVariableLength", features.variable_length},
                    {"kSoftcap", features.softcap},
                    {"kAlibi", features.alibi},
                    {"kBias", features.bias},
                    {"kDropout", features.dropout},
                    {"kAligned", features.aligned},
                    {"kDeterministic", features.deterministic},
                    // Later queries see more keys.
                    {"kLastQueriesFirst", features.window_right && !features.window_left},
                    {"kBlockQueries", shape.block_queries},
                    {"kBlockKeys", shape.block_keys},
                    {"kWarps", shape.warps},
                    {"kScoreQueryWarps", shape.score_query_warps},
                    {"kKeyWarps", shape.key_warps},
                    {"kQueryWarps", shape.query_warps},
                    {"kQueryPartColumns", portable_backward::query_part_columns(config)},
                    {"kQuerySumFloats", portable_backward::query_sum_floats(features)},
                    {"kAddsInTurns", portable_backward::adds_in_turns(config)},
                    {"kTileSlots", shape.tile_slots},
                    {"kStepsAtOnce", shape.steps_at_once},
                    {"kBlocksPerMultiprocessor", shape.blocks_per_multiprocessor},
                    {"kShortRow", short_row(features.arithmetic)}},
      .threads = config.threads(),
      .dynamic_shared_bytes = shared_bytes(config),
      .max_registers = registers_of_a_thread(config.threads(), shape.blocks_per_multiprocessor)};
}

}  // namespace strobe::cuda
