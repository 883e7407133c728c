// What cublas_abi.h declares is what cuBLAS' header says. Nothing runs: it compiles, or it does
// not.
#include "cuda/baselines/standard/cublas_abi.h"

#include <cublas_v2.h>
#include <gtest/gtest.h>

#include <type_traits>

namespace strobe::cuda::cublas::abi {
namespace {

template <class Ours>
constexpr bool same(Ours ours, long theirs) {
  return static_cast<long>(ours) == theirs;
}

static_assert(sizeof(Handle) == sizeof(cublasHandle_t));
static_assert(same(Status::success, CUBLAS_STATUS_SUCCESS));
static_assert(same(Property::major_version, MAJOR_VERSION));
static_assert(same(Property::minor_version, MINOR_VERSION));
static_assert(same(Operation::none, CUBLAS_OP_N));
static_assert(same(Operation::transpose, CUBLAS_OP_T));
static_assert(same(DataType::fp32, CUDA_R_32F));
static_assert(same(DataType::fp16, CUDA_R_16F));
static_assert(same(DataType::bf16, CUDA_R_16BF));
static_assert(same(ComputeType::fp32, CUBLAS_COMPUTE_32F));
static_assert(same(ComputeType::tf32, CUBLAS_COMPUTE_32F_FAST_TF32));
static_assert(same(Algorithm::standard, CUBLAS_GEMM_DEFAULT));
static_assert(same(MathMode::whole_sums, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));

// The order of what the one long function takes; of its overloads this one is the library's.
using Gemm = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                            const void*, const void*, cudaDataType, int, long long, const void*,
                            cudaDataType, int, long long, const void*, void*, cudaDataType, int,
                            long long, int, cublasComputeType_t, cublasGemmAlgo_t);
static_assert(std::is_pointer_v<decltype(static_cast<Gemm*>(&cublasGemmStridedBatchedEx))>);

TEST(CublasAbi, IsThatOfTheHeader) {}

}  // namespace
}  // namespace strobe::cuda::cublas::abi
