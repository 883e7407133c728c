#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strobe/tensor.h"

namespace strobe::lab {

/// A tensor view as rows along its last axis, which is the one that is contiguous. Row r of a
/// dense traversal starts with element r * row_length().
class Rows {
 public:
  explicit Rows(const TensorView& view) : view_(view) {}

  std::int64_t row_length() const { return view_.shape[view_.rank - 1]; }
  std::int64_t count() const;
  std::span<std::byte> operator[](std::int64_t row) const;

 private:
  const TensorView& view_;
};

/// The elements of a view, packed densely.
std::vector<std::byte> packed_bytes(const TensorView& view);

/// Packed elements of a type as numbers.
std::vector<double> to_doubles(std::span<const std::byte> packed, DType dtype);

}  // namespace strobe::lab
