#define STROBE_ISA bfmmla
#define STROBE_BASE neon
#include "cpu/simd/neon.h"

#include "cpu/engine/bfmmla.h"
#include "cpu/generic/choice.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

template <class Body>
inline void with_engine(DType dtype, Body&& body) {
  if (dtype == DType::bf16) return body(Choice<BfmmlaEngine<1>, ShortExp>{});
  if (dtype == DType::fp16) return body(Choice<BfmmlaEngine<2>, ShortExp>{});
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#include "cpu/generic/kernels.h"
