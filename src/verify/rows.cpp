#include "verify/rows.h"

namespace strobe::lab {

std::int64_t Rows::count() const {
  if (row_length() == 0) return 0;
  std::int64_t rows = 1;
  for (int axis = 0; axis < view_.rank - 1; ++axis) rows *= view_.shape[axis];
  return rows;
}

std::span<std::byte> Rows::operator[](std::int64_t row) const {
  std::int64_t offset = 0;
  for (int axis = view_.rank - 2; axis >= 0; --axis) {
    offset += row % view_.shape[axis] * view_.strides[axis];
    row /= view_.shape[axis];
  }
  const auto element = static_cast<std::int64_t>(size_of(view_.dtype));
  return {static_cast<std::byte*>(view_.data) + offset * element,
          static_cast<std::size_t>(row_length() * element)};
}

std::vector<std::byte> packed_bytes(const TensorView& view) {
  std::vector<std::byte> bytes;
  const Rows rows(view);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    bytes.insert(bytes.end(), rows[row].begin(), rows[row].end());
  }
  return bytes;
}

std::vector<double> to_doubles(std::span<const std::byte> packed, DType dtype) {
  std::vector<double> values(packed.size() / size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = load_element(packed.data(), static_cast<std::int64_t>(i), dtype);
  }
  return values;
}

}  // namespace strobe::lab
