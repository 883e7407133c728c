#define STROBE_ISA bfmmla
#include "cpu/simd/neon.h"

#include "cpu/engine/bfmmla.h"
#include "cpu/engine/neon_fma_engine.h"
#include "cpu/generic/choice.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

template <class Body>
inline void with_engine(DType dtype, Body&& body) {
  if (dtype == DType::bf16) return body(Choice<BfmmlaEngine<1>, ShortExp>{});
  if (dtype == DType::fp16) return body(Choice<BfmmlaEngine<2>, ShortExp>{});
  body(Choice<NeonFmaEngine, PreciseExp>{});
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#include "cpu/generic/kernels.h"
