#define STROBE_ISA plain
#include "reference/gemm/row_kernels_generic.h"
