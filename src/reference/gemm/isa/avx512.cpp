#define STROBE_ISA avx512
#include "reference/gemm/row_kernels_generic.h"
