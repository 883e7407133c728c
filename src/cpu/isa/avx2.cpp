#define STROBE_ISA avx2
#include "cpu/simd/avx2.h"

#include "cpu/generic/fma_only.h"

#include "cpu/generic/kernels.h"
