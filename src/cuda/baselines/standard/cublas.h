#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "cuda/baselines/found.h"
#include "cuda/baselines/standard/cublas_abi.h"
#include "cuda/driver/checked.h"

// NVIDIA's library of matrix products, found at run time.
namespace strobe::cuda::cublas {

/// Throws Error with the call and cuBLAS' name for the status.
[[noreturn]] void fail(const char* call, abi::Status status);

/// Every function of it that is used, under its own name.
class Library {
  template <class... Arguments>
  using Call = Checked<abi::Status, fail, Arguments...>;

  Symbols symbols_;  // first: the calls below are looked up in it

 public:
  explicit Library(SharedObject object) : symbols_{std::move(object)} {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::string& path() const { return symbols_.object.path(); }
  const std::vector<std::string>& missing() const { return symbols_.missing; }
  std::string version() const;  ///< "13.1"

  /// Handle, operations and sizes m, n, k; alpha; a, b and, after beta, c, each with its type,
  /// leading dimension and the distance from one matrix to the next; how many.
  using Gemm =
      Call<abi::Handle, abi::Operation, abi::Operation, int, int, int, const void*, const void*,
           abi::DataType, int, long long, const void*, abi::DataType, int, long long, const void*,
           void*, abi::DataType, int, long long, int, abi::ComputeType, abi::Algorithm>;

  // clang-format off
  Call<abi::Handle*> cublasCreate{symbols_, "cublasCreate_v2"};
  Call<abi::Property, int*> cublasGetProperty{symbols_, "cublasGetProperty"};
  Call<abi::Handle, void*> cublasSetStream{symbols_, "cublasSetStream_v2"};
  Call<abi::Handle, void*, std::size_t> cublasSetWorkspace{symbols_, "cublasSetWorkspace_v2"};
  Call<abi::Handle, abi::MathMode> cublasSetMathMode{symbols_, "cublasSetMathMode"};
  Gemm cublasGemmStridedBatchedEx{symbols_, "cublasGemmStridedBatchedEx"};
  // clang-format on
};

using Found = cuda::Found<Library>;

/// Loads libcublas.so.13 or .12, or what STROBE_CUBLAS names.
Found load();

/// The same, once for the process.
const Found& found();

/// Throws Unsupported with the sentence if there is none.
const Library& library();

}  // namespace strobe::cuda::cublas
