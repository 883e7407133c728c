#define STROBE_ISA avx2
#include "cpu/simd/avx2.h"

#include "cpu/generic/choice.h"
#include "cpu/generic/fma_engine.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

template <class Body>
inline void with_engine(DType dtype, Body&& body) {
  if (dtype == DType::fp32) return body(Choice<FmaEngine<Zeros::multiply>, PreciseExp>{});
  body(Choice<FmaEngine<Zeros::multiply>, ShortExp>{});
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#include "cpu/generic/kernels.h"
