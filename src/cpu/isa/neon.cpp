#define STROBE_ISA neon
#include "cpu/simd/neon.h"

#include "cpu/generic/fma_only.h"

#include "cpu/generic/kernels.h"
