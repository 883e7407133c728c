#include "verify/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "strobe/dropout.h"
#include "verify/parts.h"
#include "verify/rows.h"

namespace strobe::lab {
namespace {

/// Box-Muller: two uniform words to two normal values.
void box_muller(std::uint32_t a, std::uint32_t b, float& x, float& y) {
  constexpr float kUnit = 1.0f / (1 << 24);
  const float u = static_cast<float>((a >> 8) + 1) * kUnit;  // (0, 1], for the logarithm
  const float angle = static_cast<float>(b >> 8) * kUnit * 2 * std::numbers::pi_v<float>;
  const float radius = std::sqrt(-2 * std::log(u));
  x = radius * std::cos(angle);
  y = radius * std::sin(angle);
}

void fill_rows(const TensorView& view, RandomStream stream, const ElementValue& value,
               std::int64_t first, std::int64_t last) {
  const Rows rows(view);
  const std::int64_t length = rows.row_length();
  for (std::int64_t row = first; row < last; ++row) {
    void* data = rows[row].data();
    for (std::int64_t i = 0; i < length; ++i) {
      const auto index = static_cast<std::uint64_t>(row * length + i);
      store_element(data, i, view.dtype, value(stream, index));
    }
  }
}

}  // namespace

void RandomStream::seek(std::uint64_t block) {
  if (block == block_) return;
  block_ = block;
  words_ = philox(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), stream_, 0},
      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  box_muller(words_[0], words_[1], normals_[0], normals_[1]);
  box_muller(words_[2], words_[3], normals_[2], normals_[3]);
}

std::uint32_t RandomStream::word(std::uint64_t index) {
  seek(index / 4);
  return words_[index % 4];
}

float RandomStream::normal(std::uint64_t index) {
  seek(index / 4);
  return normals_[index % 4];
}

void fill(const TensorView& view, const RandomStream& stream, const ElementValue& value) {
  constexpr std::int64_t kLeastElements = 1 << 16;
  const Rows rows(view);
  in_parts(
      rows.count(), kLeastElements / std::max<std::int64_t>(rows.row_length(), 1),
      [&](std::int64_t first, std::int64_t last) { fill_rows(view, stream, value, first, last); });
}

}  // namespace strobe::lab
