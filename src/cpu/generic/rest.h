#pragma once
// What the engines of an instruction set leave: a handful of queries, and data that they cannot
// take.

#include "cpu/generic/backward.h"
#include "cpu/generic/fma_engine.h"
#include "cpu/generic/forward.h"
#include "cpu/generic/row_gradients.h"
#include "cpu/generic/scratch.h"
#include "cpu/generic/thin_engine.h"

#ifdef STROBE_BASE
namespace strobe::cpu::STROBE_BASE {
extern const IsaKernels kKernels;
}
#endif

namespace strobe::cpu::STROBE_ISA {
namespace {

#ifdef STROBE_BASE
/// All code for it would be the same as that of the set which this one extends.
constexpr const IsaKernels& kRest = STROBE_BASE::kKernels;
#else

/// Takes infinities and NaN too. It is rare, so one exponential serves all dtypes.
using CarefulEngine = FmaEngine<Zeros::skip>;

inline void forward_rest(const ForwardItem& item, void* scratch) {
  bool done = false;
  if (is_thin(item)) {
    with_element(item.heads->dtype, [&](auto element) {
      done = forward_item<ThinEngine<decltype(element)>, PreciseExp>(item, scratch);
    });
  }
  if (!done) forward_item<CarefulEngine, PreciseExp>(item, scratch);
}

inline std::size_t forward_rest_scratch(DType, std::int64_t dim, std::int64_t dim_v,
                                        std::int64_t rows) {
  return static_cast<std::size_t>(
      larger(bytes_of<ForwardBuffers<CarefulEngine> >(dim, dim_v, rows),
             bytes_of<ForwardBuffers<ThinEngine<Fp32> > >(dim, dim_v, kThinRows)));
}

inline void row_statistics_rest(const HeadTask& task, std::int64_t begin, std::int64_t end,
                                void* scratch) {
  row_statistics<CarefulEngine, PreciseExp>(task, begin, end, scratch);
}

inline void sum_statistics_rest(const HeadTask& task, std::int64_t begin, std::int64_t end,
                                float* sums, void* scratch) {
  sum_statistics<CarefulEngine, PreciseExp>(task, begin, end, sums, scratch);
}

inline void backward_rest(const BackwardItem& item, void* scratch) {
  backward_item<CarefulEngine, PreciseExp>(item, scratch);
}

inline void grad_bias_add_rest(const HeadTask& task, std::int64_t q_begin, std::int64_t q_end,
                               std::int64_t k_begin, std::int64_t k_end, float* sums,
                               void* scratch) {
  grad_bias_add<CarefulEngine, PreciseExp>(task, q_begin, q_end, k_begin, k_end, sums, scratch);
}

inline std::size_t backward_rest_scratch(DType, std::int64_t dim, std::int64_t dim_v) {
  return static_cast<std::size_t>(larger(bytes_of<BackwardBuffers<CarefulEngine> >(dim, dim_v),
                                         bytes_of<RowBuffers<CarefulEngine> >(dim, dim_v)));
}

constexpr IsaKernels kRest = {
    .name = nullptr,
    .panel = nullptr,
    .forward = forward_rest,
    .forward_scratch = forward_rest_scratch,
    .pack_keys = nullptr,
    .packed_block = nullptr,
    .merge = nullptr,
    .row_statistics = row_statistics_rest,
    .sum_statistics = sum_statistics_rest,
    .backward = backward_rest,
    .grad_bias_add = grad_bias_add_rest,
    .backward_scratch = backward_rest_scratch,
    .sum_dq = nullptr,
    .merge_statistics = nullptr,
    .multiply_add_loop = nullptr,
};
#endif

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
