#define STROBE_ISA neon
#include "cpu/simd/neon.h"

#include "cpu/engine/neon_fma_engine.h"
#include "cpu/generic/choice.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

template <class Body>
inline void with_engine(DType dtype, Body&& body) {
  if (dtype == DType::fp32) return body(Choice<NeonFmaEngine, PreciseExp>{});
  body(Choice<NeonFmaEngine, ShortExp>{});
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#include "cpu/generic/kernels.h"
