#define STROBE_ISA avx512_bf16
#include "cpu/simd/avx512.h"

#include "cpu/engine/dot_bf16.h"
#include "cpu/generic/choice.h"
#include "cpu/generic/fma_engine.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

template <class Body>
inline void with_engine(DType dtype, Body&& body) {
  if (dtype == DType::bf16) return body(Choice<DotEngine, ShortExp>{});
  if (dtype == DType::fp16) return body(Choice<FmaEngine<Zeros::multiply>, ShortExp>{});
  body(Choice<FmaEngine<Zeros::multiply>, PreciseExp>{});
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#include "cpu/generic/kernels.h"
