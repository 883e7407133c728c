#include "reference/gemm/row_kernels.h"

namespace strobe::reference::gemm {

// Each is defined by its translation unit under isa/, compiled with that ISA's flags.
namespace plain {
extern const RowKernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const RowKernels kKernels;
}
namespace avx512 {
extern const RowKernels kKernels;
}
#endif

const RowKernels& row_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    return avx512::kKernels;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::kKernels;
#endif
  return plain::kKernels;
}

}  // namespace strobe::reference::gemm
