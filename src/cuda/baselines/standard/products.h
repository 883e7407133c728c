#pragma once

#include <cstdint>
#include <mutex>

#include "cuda/baselines/standard/cublas.h"
#include "cuda/driver/device.h"
#include "strobe/dtype.h"

namespace strobe::cuda::standard {

/// Equal matrices behind each other, row after row, or what they are transposed.
struct Matrices {
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t pitch = 0;  ///< elements from row to row, as they are stored
  bool is_transposed = false;

  Matrices transposed() const { return {data, columns, rows, pitch, !is_transposed}; }
  /// Elements from one matrix to the next.
  std::int64_t distance() const { return (is_transposed ? columns : rows) * pitch; }
};

/// Products by cuBLAS, summed in fp32.
class Products {
 public:
  /// Memory of the device that cuBLAS wants for itself.
  static constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

  /// `tf32` lets fp32 be rounded to it.
  Products(const driver::Device& device, DType dtype, bool tf32);

  /// The calls of one run, during which no other has the library.
  class Session {
   public:
    Session(const Products& products, void* workspace, abi::Stream stream);

    /// to = factor · a · b, for each of `count`.
    void multiply(const Matrices& a, const Matrices& b, const Matrices& to, float factor,
                  std::int64_t count) const;

   private:
    const Products& products_;
    cublas::abi::Handle handle_;
    std::unique_lock<std::mutex> lock_;
    abi::Stream stream_;
  };

 private:
  const driver::Device& device_;
  cublas::abi::DataType type_;
  std::int64_t element_bytes_;
  cublas::abi::ComputeType compute_;
};

}  // namespace strobe::cuda::standard
