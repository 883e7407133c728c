#pragma once
// FmaEngine with exponentials that take as long as their instructions. Included after
// cpu/simd/avx512.h, in the namespace STROBE_ISA names.

#include "cpu/engine/avx512_exp.h"
#include "cpu/generic/fma_engine.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

struct Avx512FmaEngine : FmaEngine<Zeros::multiply> {
  static_assert(kKeyStep % kBeside == 0);

  static void scores_and_peaks(std::int64_t keys, std::int64_t depth, const void* key_rows,
                               const void* query_panel, float* c, float* peak) {
    multiply_scores(keys, depth, key_rows, query_panel, c,
                    [&](const auto& tile) { tile.raise(peak); });
  }

  // Functions of their own: inlined into the whole of an item, GCC 12 has no registers left.
  STROBE_NOT_INLINE static bool take_exponentials(PreciseExp, std::int64_t rows,
                                                  const float* scores, float scale,
                                                  const float* base, float* row_sum, float* p) {
    exp_rows<PreciseExpBeside, kPanel>(rows, scores, scale, base, row_sum, p);
    return true;
  }
  STROBE_NOT_INLINE static bool take_exponentials(ShortExp, std::int64_t rows, const float* scores,
                                                  float scale, const float* base, float* row_sum,
                                                  float* p) {
    exp_rows<ShortExpBeside, kPanel>(rows, scores, scale, base, row_sum, p);
    return true;
  }
  template <class Exp>
  static bool put_exponentials(Exp exp, std::int64_t rows, const float* scores, float scale,
                               const float* base, float* row_sum, void* block) {
    return take_exponentials(exp, rows, scores, scale, base, row_sum, static_cast<float*>(block));
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
