#include "strobe/dropout.h"

#include <cmath>

#include "core/text.h"
#include "strobe/error.h"

namespace strobe {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ULL * counter[0];
    const std::uint64_t b = 0xCD9E8D57ULL * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

std::uint32_t dropout_threshold(double probability) {
  const double threshold = std::nearbyint(probability * 0x1p32);
  return threshold >= 0x1p32 ? 0xFFFFFFFFU : static_cast<std::uint32_t>(threshold);
}

bool dropout_keeps(const Problem& problem, std::int64_t sequence, std::int64_t head,
                   std::int64_t query, std::int64_t key) {
  const auto words =
      philox({static_cast<std::uint32_t>(key / 4), static_cast<std::uint32_t>(query),
              static_cast<std::uint32_t>(head), static_cast<std::uint32_t>(sequence)},
             {static_cast<std::uint32_t>(problem.dropout_seed),
              static_cast<std::uint32_t>(problem.dropout_seed >> 32)});
  return words[static_cast<std::size_t>(key % 4)] >= dropout_threshold(problem.dropout);
}

void export_dropout_mask(const Problem& problem, const TensorView& mask) {
  problem.validate();
  const std::array<std::int64_t, 4> shape = {problem.batch, problem.heads, problem.seqlen_q,
                                             problem.keys()};
  if (mask.dtype != DType::uint8 || mask.rank != 4 || !mask.given() ||
      mask.device.kind != Device::Kind::cpu ||
      !std::equal(shape.begin(), shape.end(), mask.shape.begin())) {
    throw InvalidArgument("mask", concat("is ", mask.describe(), " on ", to_string(mask.device),
                                         ", it must be uint8[", joined(shape, ", "), "] on cpu"));
  }
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      for (std::int64_t i = 0; i < problem.seqlen_q; ++i) {
        auto* row = static_cast<std::uint8_t*>(mask.data) + b * mask.strides[0] +
                    h * mask.strides[1] + i * mask.strides[2];
        for (std::int64_t j = 0; j < problem.keys(); ++j) {
          row[j * mask.strides[3]] = dropout_keeps(problem, b, h, i, j) ? 1 : 0;
        }
      }
    }
  }
}

}  // namespace strobe
