#define STROBE_ISA avx512
#include "cpu/simd/avx512.h"

#include "cpu/engine/avx512_fma_engine.h"
#include "cpu/generic/choice.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

template <class Body>
inline void with_engine(DType dtype, Body&& body) {
  if (dtype == DType::fp32) return body(Choice<Avx512FmaEngine, PreciseExp>{});
  body(Choice<Avx512FmaEngine, ShortExp>{});
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#include "cpu/generic/kernels.h"
