#include "cpu/simd/avx512.h"

#include "cpu/generic/kernels.h"
