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

/// Keys that one work item of the backward pass owns, and queries of the other work items: one
/// size for every ISA, so that schedules and workspaces do not depend on it.
inline constexpr std::int64_t kQueryBlock = 192;
inline constexpr std::int64_t kKeyBlock = 128;

/// One instruction set's kernels. Every function works inside `scratch` (scratch_bytes long,
/// aligned to 64) and allocates nothing.
struct IsaKernels {
  const char* name;

  std::size_t (*scratch_bytes)(std::int64_t dim, std::int64_t dim_v);

  /// Output and LSE of queries [begin, end), end - begin <= kQueryBlock.
  void (*forward)(const HeadTask& task, std::int64_t begin, std::int64_t end, void* scratch);

  /// task.correction and task.delta of queries [begin, end): recomputed probabilities p times
  /// (1 + correction) sum to one, and delta is the row sum of p * dp.
  void (*row_statistics)(const HeadTask& task, std::int64_t begin, std::int64_t end, void* scratch);

  /// dq of queries [begin, end).
  void (*grad_q)(const HeadTask& task, std::int64_t begin, std::int64_t end, void* scratch);

  /// dk and dv of keys [begin, end), end - begin <= kKeyBlock, in three steps: `start` clears the
  /// sums in `scratch`, `add` adds one query head, `finish` stores into task.dk and task.dv.
  void (*grad_kv_start)(const HeadTask& task, std::int64_t begin, std::int64_t end, void* scratch);
  void (*grad_kv_add)(const HeadTask& task, std::int64_t begin, std::int64_t end, void* scratch);
  void (*grad_kv_finish)(const HeadTask& task, std::int64_t begin, std::int64_t end, void* scratch);

  /// Adds this head's bias gradient for queries [q_begin, q_end) and keys [k_begin, k_end) into
  /// `sums`, [q_end - q_begin, kKeyBlock], or [1, kKeyBlock] if the bias has one row for all.
  void (*grad_bias_add)(const HeadTask& task, std::int64_t q_begin, std::int64_t q_end,
                        std::int64_t k_begin, std::int64_t k_end, float* sums, void* scratch);

  /// Fused multiply-adds on registers; returns the floating-point operations done.
  double (*multiply_add_loop)(std::int64_t iterations);
};

}  // namespace strobe::cpu
