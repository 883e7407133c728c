#pragma once

#include <cstdint>

namespace strobe::cpu::avx512_exp {

constexpr int kLanes = 48;

/// The exponentials of Avx512FmaEngine, [rows][kLanes]. For machines with AVX-512.
void precise(std::int64_t rows, const float* x, float scale, const float* base, float* sum,
             float* p);
void brief(std::int64_t rows, const float* x, float scale, const float* base, float* sum, float* p);

}  // namespace strobe::cpu::avx512_exp
