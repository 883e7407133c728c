#define STROBE_ISA avx512_bf16
#define STROBE_BASE avx512
#include "cpu/simd/avx512.h"

#include "cpu/engine/dot_bf16.h"
#include "cpu/generic/choice.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

template <class Body>
inline void with_engine(DType dtype, Body&& body) {
  if (dtype == DType::bf16) body(Choice<DotEngine, ShortExp>{});
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#include "cpu/generic/kernels.h"
