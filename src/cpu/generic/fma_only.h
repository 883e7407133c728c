#pragma once
// The choice of engine for an instruction set that has nothing faster than fp32 multiply-adds.

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
