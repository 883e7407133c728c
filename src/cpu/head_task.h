#pragma once

#include <cstddef>
#include <cstdint>

#include "strobe/dtype.h"

// What the ISA-specific code is told: plain data, no inline functions. A function shared through a
// header could be emitted by an AVX-512 translation unit and then be called on a machine without.
namespace strobe::cpu {

/// Rows of contiguous elements in the problem's dtype.
struct Rows {
  void* data = nullptr;
  std::int64_t stride = 0;  // elements from one row to the next
};

/// One query head of one sequence.
struct HeadTask {
  DType dtype = DType::fp32;
  Rows q{}, k{}, v{}, out{};  // [len_q, dim] [len_k, dim] [len_k, dim_v] [len_q, dim_v]
  Rows dout{}, dq{}, dk{}, dv{};
  float* lse = nullptr;         // [len_q]; may be null in the forward pass
  float* delta = nullptr;       // [len_q], backward only: see IsaKernels::row_statistics
  float* correction = nullptr;  // [len_q], likewise
  std::int64_t len_q = 0;
  std::int64_t len_k = 0;
  std::int64_t dim = 0;
  std::int64_t dim_v = 0;

  float scale = 1;
  std::int64_t window_left = -1;
  std::int64_t window_right = -1;
  float softcap = 0;  // 0: off
  bool has_alibi = false;
  float alibi_slope = 0;
  bool has_sink = false;
  float sink = 0;
  Rows bias{};                 // [len_q, len_k], stride 0 if one row serves all; null: none
  bool bias_per_query = true;  // whether the bias, and so its gradient, has a row per query

  bool has_dropout = false;
  std::uint32_t dropout_threshold = 0;  // random words below are dropped
  float dropout_scale = 1;              // what survives is multiplied by 1 / (1 - p)
  std::uint32_t seed[2] = {};
  std::uint32_t head = 0;
  std::uint32_t sequence = 0;
};

/// Queries of one sequence's heads that share a key head, against some of its keys. Rows count
/// through the heads: row r is query r % len_q of heads[r / len_q].
struct ForwardItem {
  const HeadTask* heads = nullptr;
  std::int64_t group = 1;
  std::int64_t row_begin = 0, row_end = 0;
  std::int64_t key_begin = 0, key_end = 0;
  /// Where the keys are split among items: [row_end - row_begin][dim_v + 2], sums that are not yet
  /// divided, then the reference they are relative to and the row sum. Null: the item has all keys.
  float* partial = nullptr;
  /// The keys and values of the head as IsaKernels::pack_keys packs them. Null: the item packs them
  /// for itself.
  void* packs = nullptr;
};

/// Keys that are packed together with their values, and the bytes that they take then.
struct PackedBlock {
  std::int64_t keys = 0;
  std::int64_t bytes = 0;
};

/// Some keys of one sequence's key head, against all queries of the heads that share it.
struct BackwardItem {
  const HeadTask* heads = nullptr;
  std::int64_t group = 1;
  std::int64_t key_begin = 0, key_end = 0;
  /// This item's share of dq, [group * len_q][dim], not yet scaled. Rows that see none of the keys
  /// are left alone. Null: the item has all keys, at most kAloneKeys, and stores dq itself.
  float* dq = nullptr;
  /// Whether row_statistics is left to the item, which has all keys, at most kOneBlockKeys.
  bool statistics = false;
};

/// Keys that an item of the backward pass takes at once, and that it takes in one block.
inline constexpr std::int64_t kAloneKeys = 1024;
inline constexpr std::int64_t kOneBlockKeys = 128;

/// Statistics of rows are exact in fp32 where a head has no more queries than this: neither sums
/// over them nor their mean hide the rounding of an LSE.
inline constexpr std::int64_t kFewQueries = 128;
/// What they are made of, as IsaKernels::sum_statistics leaves it: sums of p, of what their
/// roundings lost, and of p * dp.
inline constexpr std::int64_t kStatisticsSums = 3;

/// One instruction set's kernels. Every function works inside `scratch` (as long as the function
/// for it says, aligned to 64) and allocates nothing.
struct IsaKernels {
  const char* name;

  /// Queries that are computed side by side.
  std::int64_t (*panel)(DType dtype);

  /// Output and LSE, or partial sums. Scratch for items of up to `rows` rows.
  void (*forward)(const ForwardItem& item, void* scratch);
  std::size_t (*forward_scratch)(DType dtype, std::int64_t dim, std::int64_t dim_v,
                                 std::int64_t rows);

  /// Packs the block of keys at `key`, a multiple of packed_block's, where it belongs in `packs`,
  /// [blocks][bytes], for all items of the head. What no query sees is left out.
  void (*pack_keys)(const HeadTask& task, std::int64_t key, void* packs);
  PackedBlock (*packed_block)(DType dtype, std::int64_t dim, std::int64_t dim_v);

  /// Output and LSE of rows [item.row_begin, item.row_end) from the partial sums of `splits` items,
  /// `stride` floats apart, the first at item.partial, which is overwritten.
  void (*merge)(const ForwardItem& item, std::int64_t splits, std::int64_t stride);

  /// task.correction and task.delta of queries [begin, end): recomputed probabilities p times
  /// (1 + correction) sum to one, and delta is the row sum of p * dp.
  void (*row_statistics)(const HeadTask& task, std::int64_t begin, std::int64_t end, void* scratch);

  /// The sums of exact ones over keys [begin, end) alone, of all queries: [len_q][kStatisticsSums].
  void (*sum_statistics)(const HeadTask& task, std::int64_t begin, std::int64_t end, float* sums,
                         void* scratch);

  /// dk and dv of the item's keys, summed over the heads in order, and its share of dq.
  void (*backward)(const BackwardItem& item, void* scratch);

  /// Adds this head's bias gradient for queries [q_begin, q_end) and at most kBiasKeys keys
  /// [k_begin, k_end) into `sums`, [q_end - q_begin, kBiasKeys], or [1, kBiasKeys] if the bias has
  /// one row for all.
  void (*grad_bias_add)(const HeadTask& task, std::int64_t q_begin, std::int64_t q_end,
                        std::int64_t k_begin, std::int64_t k_end, float* sums, void* scratch);

  /// Scratch of the four before.
  std::size_t (*backward_scratch)(DType dtype, std::int64_t dim, std::int64_t dim_v);

  /// dq of queries [begin, end) from the shares of `splits` items, `stride` floats apart, the first
  /// at `shares`, which is overwritten; a query adds those that hold keys it may see, of which
  /// split s has [s * split_keys, (s + 1) * split_keys).
  void (*sum_dq)(const HeadTask& task, std::int64_t begin, std::int64_t end, float* shares,
                 std::int64_t splits, std::int64_t stride, std::int64_t split_keys);

  /// What row_statistics finds for queries [begin, end), from the sums of `splits` cuts of the
  /// keys, `stride` floats apart, of which the first are at `sums`.
  void (*merge_statistics)(const HeadTask& task, std::int64_t begin, std::int64_t end,
                           const float* sums, std::int64_t splits, std::int64_t stride);

  /// Fused multiply-adds on registers; returns the floating-point operations done.
  double (*multiply_add_loop)(std::int64_t iterations);
};

/// Keys and queries of a tile of the bias gradient.
inline constexpr std::int64_t kBiasKeys = 128;
inline constexpr std::int64_t kBiasQueries = 192;

}  // namespace strobe::cpu
