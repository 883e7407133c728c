#pragma once
// How the kernel is compiled for a problem: what it computes and how it is cut.

#include <algorithm>
#include <array>
#include <span>

#include "device/tile_pitch.cuh"
#include "kernels/configuration.h"

namespace strobe::cuda {

/// What the kernel computes. Everything that is off costs nothing.
struct PortableForwardFeatures {
  Arithmetic arithmetic = Arithmetic::bf16;
  int dim = 128;
  int value_dim = 128;
  bool window_left = false;
  bool window_right = false;  ///< also if causal
  bool variable_length = false;
  bool positive_scale = true;
  bool softcap = false;
  bool alibi = false;
  bool bias = false;
  bool sinks = false;
  bool dropout = false;
  bool aligned = true;  ///< rows of k, v, and q if whole chunks, begin at multiples of 16 bytes
};

/// How it is cut.
struct PortableForwardShape {
  int block_queries = 128;
  int block_keys = 64;
  int warps = 4;        ///< each has block_queries / warps rows, 16 or 32
  int tile_slots = 2;   ///< of keys and values in shared memory, at least 2
  int value_parts = 1;  ///< thread blocks that share a block of queries and divide the value dim
  int blocks_per_multiprocessor = 1;  ///< that the registers are limited for
  bool queries_in_registers = false;
  /// Steps of the product of queries and keys that are unrolled. With more of them the compiler
  /// loads further ahead, and needs more registers and time.
  int steps_unrolled = 4;
};

struct PortableForwardConfig {
  PortableForwardFeatures features{};
  PortableForwardShape shape{};

  int threads() const { return shape.warps * 32; }
};

/// Columns of the value that a thread block computes.
constexpr int part_dim(const PortableForwardConfig& config) {
  const int dim = config.features.value_dim, parts = config.shape.value_parts;
  return parts == 1 ? dim : ((dim + parts - 1) / parts + 15) / 16 * 16;
}

/// What kernel.cu lays out: the queries, or the output that takes their place, and the ring.
constexpr int shared_bytes(const PortableForwardConfig& config) {
  const auto& [features, shape] = config;
  const int element = is_half(features.arithmetic) ? 2 : 4;
  const int pitch = tile_pitch(std::max(features.dim, part_dim(config)), element);
  return (shape.block_queries + shape.tile_slots * shape.block_keys) * pitch;
}

namespace portable_forward {

/// A way to cut that serves dims up to `dim`. The tile slots of its shape are the fewest that it is
/// worth choosing for; it gets more if there is room.
struct Candidate {
  int dim;
  PortableForwardShape shape;
};

// Where tensor cores are fast, what bounds the kernel is shared memory: a warp of 32 rows reads
// keys and values half as often as one of 16. It takes 4·dim bytes of registers a row for the
// output, so larger dims must do with 16.
inline constexpr std::array kHalfWide = {
    Candidate{64,
              {.block_queries = 128,
               .block_keys = 64,
               .warps = 4,
               .blocks_per_multiprocessor = 2,
               .queries_in_registers = true}},
    Candidate{112,
              {.block_queries = 128,
               .block_keys = 64,
               .warps = 4,
               .tile_slots = 3,
               .blocks_per_multiprocessor = 2}},
    Candidate{128,
              {.block_queries = 128,
               .block_keys = 64,
               .warps = 4,
               .tile_slots = 3,
               .blocks_per_multiprocessor = 2,
               .steps_unrolled = 8}},
    Candidate{128,
              {.block_queries = 128, .block_keys = 48, .warps = 4, .blocks_per_multiprocessor = 2}},
    Candidate{136,
              {.block_queries = 128,
               .block_keys = 64,
               .warps = 4,
               .tile_slots = 3,
               .blocks_per_multiprocessor = 2,
               .steps_unrolled = 8}},
    Candidate{160,
              {.block_queries = 128, .block_keys = 32, .warps = 4, .blocks_per_multiprocessor = 2}},
    Candidate{256, {.block_queries = 128, .block_keys = 64, .warps = 8}},
    Candidate{256, {.block_queries = 64, .block_keys = 64, .warps = 4}},
    Candidate{512, {.block_queries = 64, .block_keys = 64, .warps = 4}},
    Candidate{512, {.block_queries = 64, .block_keys = 32, .warps = 4}},
    Candidate{512, {.block_queries = 64, .block_keys = 16, .warps = 4}},
};
inline constexpr std::array kHalfNarrow = {
    Candidate{64,
              {.block_queries = 128, .block_keys = 32, .warps = 8, .blocks_per_multiprocessor = 2}},
    Candidate{128, {.block_queries = 128, .block_keys = 64, .warps = 8}},
    Candidate{256, {.block_queries = 64, .block_keys = 32, .warps = 4}},
    Candidate{512, {.block_queries = 64, .block_keys = 16, .warps = 4}},
};
inline constexpr std::array kTf32Wide = {
    Candidate{64,
              {.block_queries = 128, .block_keys = 64, .warps = 4, .blocks_per_multiprocessor = 2}},
    Candidate{128,
              {.block_queries = 128, .block_keys = 32, .warps = 4, .blocks_per_multiprocessor = 2}},
    Candidate{128,
              {.block_queries = 64, .block_keys = 32, .warps = 2, .blocks_per_multiprocessor = 2}},
    Candidate{256, {.block_queries = 128, .block_keys = 32, .warps = 8}},
    Candidate{256, {.block_queries = 64, .block_keys = 32, .warps = 4}},
    Candidate{512, {.block_queries = 64, .block_keys = 16, .warps = 4}},
    Candidate{512, {.block_queries = 32, .block_keys = 16, .warps = 2}},
};
inline constexpr std::array kTf32Narrow = {
    Candidate{64, {.block_queries = 128, .block_keys = 32, .warps = 8}},
    Candidate{128, {.block_queries = 64, .block_keys = 32, .warps = 4}},
    Candidate{256, {.block_queries = 64, .block_keys = 16, .warps = 4}},
    Candidate{512, {.block_queries = 16, .block_keys = 16, .warps = 1}},
};

// Exact products are five of TF32, so shared memory does not bound them, but registers do.
inline constexpr std::array kExactWide = {
    Candidate{64,
              {.block_queries = 64,
               .block_keys = 16,
               .warps = 4,
               .blocks_per_multiprocessor = 3,
               .steps_unrolled = 2}},
    Candidate{128,
              {.block_queries = 64,
               .block_keys = 16,
               .warps = 4,
               .blocks_per_multiprocessor = 2,
               .steps_unrolled = 2}},
    Candidate{256, {.block_queries = 128, .block_keys = 16, .warps = 8, .steps_unrolled = 2}},
    Candidate{256, {.block_queries = 64, .block_keys = 16, .warps = 4, .steps_unrolled = 2}},
    Candidate{512, {.block_queries = 64, .block_keys = 16, .warps = 4, .steps_unrolled = 2}},
    Candidate{512, {.block_queries = 32, .block_keys = 16, .warps = 2, .steps_unrolled = 2}},
};
inline constexpr std::array kExactNarrow = {
    Candidate{64,
              {.block_queries = 64,
               .block_keys = 16,
               .warps = 4,
               .blocks_per_multiprocessor = 2,
               .steps_unrolled = 2}},
    Candidate{256, {.block_queries = 64, .block_keys = 16, .warps = 4, .steps_unrolled = 2}},
    Candidate{512, {.block_queries = 16, .block_keys = 16, .warps = 1, .steps_unrolled = 2}},
};

}  // namespace portable_forward

/// Whether more is done to a score than the plain scale and the usual masks, or to load it.
constexpr bool needs_registers(const PortableForwardFeatures& features) {
  return features.softcap || features.alibi || features.bias || features.dropout ||
         !features.positive_scale || features.window_left || !features.aligned;
}

/// The first candidate that fits, with as many tile slots as there is room for.
inline PortableForwardShape first_that_fits(const PortableForwardFeatures& features,
                                            std::span<const portable_forward::Candidate> candidates,
                                            SharedMemory memory) {
  constexpr int kReservedPerBlock = 1024;
  // Columns of the output that a warp has registers for.
  const int max_part = features.arithmetic == Arithmetic::fp32 ? 128 : 256;
  PortableForwardShape shape;
  for (const auto& candidate : candidates) {
    const int dim = std::max(features.dim, features.value_dim);
    const int warp_rows = candidate.shape.block_queries / candidate.shape.warps;
    if (candidate.dim < dim) continue;
    if (warp_rows > 16 && dim > 128 && needs_registers(features)) continue;
    shape = candidate.shape;
    if (needs_registers(features)) {
      shape.block_keys = std::min(shape.block_keys, 32);
      shape.queries_in_registers = false;
      shape.steps_unrolled = std::min(shape.steps_unrolled, 4);
    }
    // So do the bounds of masks and lengths, if fewer.
    if (features.window_right && (dim > 128 || features.variable_length))
      shape.steps_unrolled = std::min(shape.steps_unrolled, 4);
    if (features.variable_length && !features.window_right && dim > 112)
      shape.block_keys = std::min(shape.block_keys, 32);
    shape.value_parts = (features.value_dim + max_part - 1) / max_part;
    const int room =
        std::min(memory.per_block,
                 memory.per_multiprocessor / shape.blocks_per_multiprocessor - kReservedPerBlock);
    for (shape.tile_slots = 4; shape.tile_slots >= candidate.shape.tile_slots; --shape.tile_slots) {
      if (shared_bytes({features, shape}) <= room) return shape;
    }
  }
  return shape;
}

inline PortableForwardConfig choose_portable_forward(const PortableForwardFeatures& features,
                                                     int architecture) {
  using namespace portable_forward;
  const SharedMemory memory = shared_memory_of(architecture);
  const bool wide = memory.per_block > 100 * 1024;
  std::span<const Candidate> candidates =
      wide ? std::span<const Candidate>(kHalfWide) : kHalfNarrow;
  if (features.arithmetic == Arithmetic::tf32) {
    candidates = wide ? std::span<const Candidate>(kTf32Wide) : kTf32Narrow;
  } else if (features.arithmetic == Arithmetic::fp32) {
    candidates = wide ? std::span<const Candidate>(kExactWide) : kExactNarrow;
  }
  return {features, first_that_fits(features, candidates, memory)};
}

/// Its choices as kernel.cu knows them.
inline jit::KernelDescription description(const PortableForwardConfig& config) {
  const auto& [features, shape] = config;
  return {
      .name = "portable_forward",
      .source = "kernels/portable_forward/kernel.cu",
      .entries = {"portable_forward"},
      .constants = {arithmetic_constant(features.arithmetic),
                    {"kDim", features.dim},
                    {"kValueDim", features.value_dim},
                    {"kWindowLeft", features.window_left},
                    {"kWindowRight", features.window_right},
                    {"kVariableLength", features.variable_length},
                    {"kPositiveScale", features.positive_scale},
                    {"kSoftcap", features.softcap},
                    {"kAlibi", features.alibi},
                    {"kBias", features.bias},
                    {"kSinks", features.sinks},
                    {"kDropout", features.dropout},
                    {"kAligned", features.aligned},
                    {"kLastQueriesFirst", last_queries_first(features)},
                    {"kBlockQueries", shape.block_queries},
                    {"kBlockKeys", shape.block_keys},
                    {"kWarps", shape.warps},
                    {"kTileSlots", shape.tile_slots},
                    {"kValueParts", shape.value_parts},
                    {"kPartDim", part_dim(config)},
                    {"kBlocksPerMultiprocessor", shape.blocks_per_multiprocessor},
                    {"kQueriesInRegisters", shape.queries_in_registers},
                    {"kStepsUnrolled", shape.steps_unrolled}},
      .threads = config.threads(),
      .dynamic_shared_bytes = shared_bytes(config),
      .max_registers = registers_of_a_thread(config.threads(), shape.blocks_per_multiprocessor)};
}

}  // namespace strobe::cuda
