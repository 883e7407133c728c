#define STROBE_ISA scalar
#include "cpu/simd/scalar.h"

#include "cpu/generic/fma_only.h"

#include "cpu/generic/kernels.h"
