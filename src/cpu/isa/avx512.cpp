#define STROBE_ISA avx512
#include "cpu/simd/avx512.h"

#include "cpu/generic/fma_only.h"

#include "cpu/generic/kernels.h"
