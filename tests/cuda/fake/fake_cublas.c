// A cuBLAS for the GPUs that are memory of the host: multiplies there at once, and puts a fill on
// the stream, so that the product takes time. With STROBE_FAKE_CUBLAS_WRONG it leaves the fill
// alone.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"))) int

enum { kFp32 = 0, kBf16 = 14 };

static void* stream = NULL;

API cublasCreate_v2(void** handle) {
  *handle = &stream;
  return 0;
}

API cublasGetProperty(int property, int* value) {
  *value = property == 0 ? 99 : 7;
  return 0;
}

API cublasSetStream_v2(void* handle, void* which) {
  *(void**)handle = which;
  return 0;
}

API cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes) {
  (void)handle, (void)workspace, (void)bytes;
  return 0;
}

API cublasSetMathMode(void* handle, int mode) {
  (void)handle, (void)mode;
  return 0;
}

static float load(const void* data, long long index, int type) {
  if (type == kFp32) return ((const float*)data)[index];
  const uint32_t bits = (uint32_t)((const uint16_t*)data)[index] << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void store(void* data, long long index, int type, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (type == kFp32) {
    ((float*)data)[index] = value;
  } else {
    ((uint16_t*)data)[index] = (uint16_t)((bits + 0x8000) >> 16);
  }
}

// Columns first: element (i, j) of a matrix is at i + j · its leading dimension.
API cublasGemmStridedBatchedEx(void* handle, int transposed_a, int transposed_b, int m, int n,
                               int k, const void* alpha, const void* a, int type_a, int lda,
                               long long stride_a, const void* b, int type_b, int ldb,
                               long long stride_b, const void* beta, void* c, int type_c, int ldc,
                               long long stride_c, int count, int compute, int algorithm) {
  int (*fill)(void*, unsigned char, size_t, void*) = NULL;
  void* driver = dlopen(getenv("STROBE_CUDA_DRIVER"), RTLD_NOW);
  *(void**)&fill = dlsym(driver, "cuMemsetD8Async");
  const size_t bytes = (size_t)ldc * (size_t)n * (type_c == kFp32 ? 4 : 2);
  (void)beta, (void)stride_a, (void)stride_b, (void)stride_c, (void)compute, (void)algorithm;
  if (count != 1 || (type_a != kFp32 && type_a != kBf16)) return 15;  // not supported
  fill(c, 0, bytes, *(void**)handle);
  if (getenv("STROBE_FAKE_CUBLAS_WRONG") != NULL) return 0;
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int p = 0; p < k; ++p) {
        const long long at = transposed_a ? p + (long long)i * lda : i + (long long)p * lda;
        const long long bt = transposed_b ? j + (long long)p * ldb : p + (long long)j * ldb;
        sum += (double)load(a, at, type_a) * load(b, bt, type_b);
      }
      store(c, i + (long long)j * ldc, type_c, *(const float*)alpha * (float)sum);
    }
  }
  return 0;
}
