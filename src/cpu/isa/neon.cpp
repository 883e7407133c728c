#include "cpu/simd/neon.h"

#include "cpu/generic/kernels.h"
