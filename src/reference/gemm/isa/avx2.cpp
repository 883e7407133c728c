#define STROBE_ISA avx2
#include "reference/gemm/row_kernels_generic.h"
