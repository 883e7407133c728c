#include "reference/row_math.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace strobe::reference {
namespace {

constexpr std::int64_t kLanes = 8;

// Eight rows at once save `out` seven of eight trips through memory.
void add_eight_rows(float* __restrict out, std::int64_t columns, const float* __restrict w,
                    const float* __restrict r, std::int64_t s) {
  const float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
  const float w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7];
  for (std::int64_t c = 0; c < columns; ++c) {
    out[c] = out[c] + w0 * r[c] + w1 * r[s + c] + w2 * r[2 * s + c] + w3 * r[3 * s + c] +
             w4 * r[4 * s + c] + w5 * r[5 * s + c] + w6 * r[6 * s + c] + w7 * r[7 * s + c];
  }
}

void add_row(float* __restrict out, std::int64_t columns, float w, const float* __restrict row) {
  for (std::int64_t c = 0; c < columns; ++c) out[c] += w * row[c];
}

}  // namespace

void add_rows(float* out, std::int64_t columns, const float* weights, std::int64_t count,
              const float* rows, std::int64_t stride) {
  std::int64_t k = 0;
  for (; k + 8 <= count; k += 8) {
    add_eight_rows(out, columns, weights + k, rows + k * stride, stride);
  }
  for (; k < count; ++k) add_row(out, columns, weights[k], rows + k * stride);
}

void add_marked_rows(float* out, std::int64_t columns, const float* weights, const float* marks,
                     std::int64_t count, const float* rows, std::int64_t stride) {
  const auto hidden = [](float mark) { return mark < 0; };
  const float* const end = marks + count;
  for (const float* begin = marks; (begin = std::find_if_not(begin, end, hidden)) != end;) {
    const float* const run_end = std::find_if(begin, end, hidden);
    const std::int64_t k = begin - marks;
    add_rows(out, columns, weights + k, run_end - begin, rows + k * stride, stride);
    begin = run_end;
  }
}

void multiply(float* values, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

float maximum(const float* values, std::int64_t count) {
  std::array<float, kLanes> lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  const auto larger = [](float value, float lane) { return value > lane ? value : lane; };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] = larger(values[i + l], lanes[l]);
  }
  for (std::int64_t l = 0; i < count; ++i, ++l) lanes[l] = larger(values[i], lanes[l]);
  return *std::max_element(lanes.begin(), lanes.end());
}

float sum(const float* values, std::int64_t count) {
  std::array<float, kLanes> lanes = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += values[i + l];
  }
  for (std::int64_t l = 0; i < count; ++i, ++l) lanes[l] += values[i];
  return std::accumulate(lanes.begin(), lanes.end(), 0.0F);
}

}  // namespace strobe::reference
