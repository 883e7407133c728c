#pragma once
// Everything an instruction set offers, as one table. An isa/*.cpp names itself by STROBE_ISA, and
// by STROBE_BASE the one that it extends, if any; then it includes its vector type, says with
// `with_engine` how it multiplies which dtypes, and includes this.

#include <cstddef>

#include "cpu/generic/backward.h"
#include "cpu/generic/engine.h"
#include "cpu/generic/forward.h"
#include "cpu/generic/rest.h"
#include "cpu/generic/row_gradients.h"
#include "cpu/generic/thin_engine.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

inline std::int64_t panel(DType dtype) {
  std::int64_t lanes = 0;
  with_engine(dtype, [&](auto choice) { lanes = decltype(choice)::Engine::kPanel; });
  return lanes > 0 ? lanes : kRest.panel(dtype);
}

/// Panel by panel, each by the engine if it can take what the panel sees: which rows it cannot take
/// must not depend on how many share an item.
template <class Choice>
inline void forward_by_panels(const ForwardItem& item, void* scratch) {
  constexpr std::int64_t kPanel = Choice::Engine::kPanel;
  ForwardItem panel = item;
  panel.packs = nullptr;  // tell of keys as well that the panel does not see
  for (std::int64_t row = item.row_begin; row < item.row_end; row += kPanel) {
    panel.row_begin = row;
    panel.row_end = smaller(row + kPanel, item.row_end);
    if (!forward_item<typename Choice::Engine, typename Choice::Exp>(panel, scratch))
      kRest.forward(panel, scratch);
    if (panel.partial != nullptr) panel.partial += kPanel * (panel.heads->dim_v + 2);
  }
}

inline void forward(const ForwardItem& item, void* scratch) {
  bool done = false;
  if (!is_thin(item)) {
    with_engine(item.heads->dtype, [&](auto choice) {
      using Choice = decltype(choice);
      if (!forward_item<typename Choice::Engine, typename Choice::Exp>(item, scratch))
        forward_by_panels<Choice>(item, scratch);
      done = true;
    });
  }
  if (!done) kRest.forward(item, scratch);
}

inline void pack_keys(const HeadTask& task, std::int64_t key, void* packs) {
  bool done = false;
  with_engine(task.dtype, [&](auto choice) {
    pack_for_all<typename decltype(choice)::Engine>(task, key, packs);
    done = true;
  });
  if (!done) kRest.pack_keys(task, key, packs);
}

inline PackedBlock packed_block(DType dtype, std::int64_t dim, std::int64_t dim_v) {
  PackedBlock block;
  with_engine(dtype, [&](auto choice) {
    using Engine = typename decltype(choice)::Engine;
    block = {Engine::kKeyBlock, bytes_of<KeyPack<Engine>>(dim, dim_v)};
  });
  return block.keys > 0 ? block : kRest.packed_block(dtype, dim, dim_v);
}

inline std::size_t forward_scratch(DType dtype, std::int64_t dim, std::int64_t dim_v,
                                   std::int64_t rows) {
  auto bytes = static_cast<std::int64_t>(kRest.forward_scratch(dtype, dim, dim_v, rows));
  with_engine(dtype, [&](auto choice) {
    using Engine = typename decltype(choice)::Engine;
    bytes = larger(bytes, bytes_of<ForwardBuffers<Engine>>(dim, dim_v, rows));
  });
  return static_cast<std::size_t>(bytes);
}

inline void row_statistics(const HeadTask& task, std::int64_t begin, std::int64_t end,
                           void* scratch) {
  bool done = false;
  with_engine(task.dtype, [&](auto choice) {
    using Choice = decltype(choice);
    done = row_statistics<typename Choice::Engine, typename Choice::Exp>(task, begin, end, scratch);
  });
  if (!done) kRest.row_statistics(task, begin, end, scratch);
}

inline void sum_statistics(const HeadTask& task, std::int64_t begin, std::int64_t end, float* sums,
                           void* scratch) {
  bool done = false;
  with_engine(task.dtype, [&](auto choice) {
    using Choice = decltype(choice);
    done = sum_statistics<typename Choice::Engine, typename Choice::Exp>(task, begin, end, sums,
                                                                         scratch);
  });
  if (!done) kRest.sum_statistics(task, begin, end, sums, scratch);
}

inline void backward(const BackwardItem& item, void* scratch) {
  bool done = false;
  with_engine(item.heads->dtype, [&](auto choice) {
    using Choice = decltype(choice);
    done = backward_item<typename Choice::Engine, typename Choice::Exp>(item, scratch);
  });
  if (!done) kRest.backward(item, scratch);
}

inline void grad_bias_add(const HeadTask& task, std::int64_t q_begin, std::int64_t q_end,
                          std::int64_t k_begin, std::int64_t k_end, float* sums, void* scratch) {
  std::int64_t query = q_begin;
  with_engine(task.dtype, [&](auto choice) {
    using Choice = decltype(choice);
    query = grad_bias_add<typename Choice::Engine, typename Choice::Exp>(
        task, q_begin, q_end, k_begin, k_end, sums, scratch);
  });
  const std::int64_t done = task.bias_per_query ? query - q_begin : 0;
  if (query < q_end)
    kRest.grad_bias_add(task, query, q_end, k_begin, k_end, sums + done * kBiasKeys, scratch);
}

inline std::size_t backward_scratch(DType dtype, std::int64_t dim, std::int64_t dim_v) {
  auto bytes = static_cast<std::int64_t>(kRest.backward_scratch(dtype, dim, dim_v));
  with_engine(dtype, [&](auto choice) {
    using Engine = typename decltype(choice)::Engine;
    bytes = larger(bytes, bytes_of<BackwardBuffers<Engine>>(dim, dim_v));
    bytes = larger(bytes, bytes_of<RowBuffers<Engine>>(dim, dim_v));
  });
  return static_cast<std::size_t>(bytes);
}

/// As many independent accumulators as a tile has, so that latency is hidden. The numbers come from
/// memory: for all the compiler knows, each is different, and it has nothing to shorten. Adding to
/// the accumulator is the form that every instruction set has; others cost some of them copies.
inline double multiply_add_loop(std::int64_t iterations) {
  constexpr int kCount = kTileRows * kTileVecs;
  float numbers[kCount] = {};
  float factors[2 * kWidth] = {};
  __asm__ volatile("" : : "r"(numbers), "r"(factors) : "memory");  // somebody writes them
  Vec sums[kCount];
#pragma GCC unroll 24
  for (int k = 0; k < kCount; ++k) sums[k] = splat(numbers[k]);
  // Loaded, as those of a kernel are: see neon_peak.h.
  const Vec a = load(factors);
  const Vec b = load(factors + kWidth);
  for (std::int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 24
    for (int k = 0; k < kCount; ++k) sums[k] = fma(a, b, sums[k]);
  }
  Vec total = splat(0.0F);
#pragma GCC unroll 24
  for (int k = 0; k < kCount; ++k) total = total + sums[k];
  float result[kWidth];
  store(result, total);
  __asm__ volatile("" : : "r"(result) : "memory");  // somebody reads it
  return 2.0 * kCount * kWidth * static_cast<double>(iterations);
}

}  // namespace

#define STROBE_QUOTED(x) #x
#define STROBE_NAME(x) STROBE_QUOTED(x)

extern const IsaKernels kKernels;
const IsaKernels kKernels = {
    .name = STROBE_NAME(STROBE_ISA),
    .panel = panel,
    .forward = forward,
    .forward_scratch = forward_scratch,
    .pack_keys = pack_keys,
    .packed_block = packed_block,
    .merge = merge,
    .row_statistics = row_statistics,
    .sum_statistics = sum_statistics,
    .backward = backward,
    .grad_bias_add = grad_bias_add,
    .backward_scratch = backward_scratch,
    .sum_dq = sum_dq,
    .merge_statistics = merge_statistics,
    .multiply_add_loop = multiply_add_loop,
};

}  // namespace strobe::cpu::STROBE_ISA
