#pragma once

#include <array>
#include <cstdint>

#include "strobe/export.h"
#include "strobe/problem.h"
#include "strobe/tensor.h"

namespace strobe {

/// Philox4x32-10: four random words for a counter and a key. Every device computes the same.
STROBE_API std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                               std::array<std::uint32_t, 2> key);

/// Words below this are dropped.
STROBE_API std::uint32_t dropout_threshold(double probability);

/// Whether element (query, key) of a sequence and head survives. Word key % 4 of
/// philox({key / 4, query, head, sequence}, seed) decides, so the mask depends on nothing but
/// the position and the seed: not on tiles, threads, the device or a neighbour's length.
STROBE_API bool dropout_keeps(const Problem& problem, std::int64_t sequence, std::int64_t head,
                              std::int64_t query, std::int64_t key);

/// Writes the mask, 1 kept and 0 dropped, as uint8 [batch, heads, seqlen_q, seqlen_k].
STROBE_API void export_dropout_mask(const Problem& problem, const TensorView& mask);

}  // namespace strobe
