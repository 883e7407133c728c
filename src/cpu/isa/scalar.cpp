#define STROBE_ISA scalar
#include "cpu/simd/scalar.h"

#include "cpu/generic/choice.h"
#include "cpu/generic/fma_engine.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// One for all dtypes: this is there to run anywhere, not to be fast.
template <class Body>
inline void with_engine(DType, Body&& body) {
  body(Choice<FmaEngine<Zeros::multiply>, PreciseExp>{});
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA

#include "cpu/generic/kernels.h"
