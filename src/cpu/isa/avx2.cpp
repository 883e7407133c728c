#include "cpu/simd/avx2.h"

#include "cpu/generic/kernels.h"
