#include "cpu/simd/scalar.h"

#include "cpu/generic/kernels.h"
