#pragma once

// What is used of the interface of cuBLAS 12 and 13, declared here so that it need not be installed
// to build. The tests hold it against cublas_api.h where there is one.
namespace strobe::cuda::cublas::abi {

enum class Status : int { success = 0 };

using Handle = struct CublasHandleObject*;

enum class Property : int { major_version = 0, minor_version = 1 };
enum class Operation : int { none = 0, transpose = 1 };
enum class DataType : int { fp32 = 0, fp16 = 2, bf16 = 14 };
enum class ComputeType : int { fp32 = 68, tf32 = 77 };
enum class Algorithm : int { standard = -1 };
/// Sums of 16-bit products are not rounded to 16 bits on the way.
enum class MathMode : int { whole_sums = 16 };

}  // namespace strobe::cuda::cublas::abi
