// Compiled for AVX-512, so it keeps what it instantiates to itself, as the files of src/cpu/isa do.
#include "cpu/avx512_exp.h"

// The vector type comes first: what follows is written in terms of it.
#define STROBE_ISA avx512_exp
#include "cpu/simd/avx512.h"

#include "cpu/engine/avx512_fma_engine.h"

namespace strobe::cpu::avx512_exp {

static_assert(Avx512FmaEngine::kPanel == kLanes);

void precise(std::int64_t rows, const float* x, float scale, const float* base, float* sum,
             float* p) {
  Avx512FmaEngine::put_exponentials(PreciseExp(), rows, x, scale, base, sum, p);
}

void brief(std::int64_t rows, const float* x, float scale, const float* base, float* sum,
           float* p) {
  Avx512FmaEngine::put_exponentials(ShortExp(), rows, x, scale, base, sum, p);
}

}  // namespace strobe::cpu::avx512_exp
