#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "strobe/tensor.h"

namespace strobe::lab {

/// Numbers that are a pure function of (seed, stream, index): two tensors never share any, and a
/// number does not depend on how its tensor is stored or who draws it. Uniform words and standard
/// normal values from Philox blocks of four.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint32_t stream) : seed_(seed), stream_(stream) {}

  std::uint32_t word(std::uint64_t index);
  float normal(std::uint64_t index);

 private:
  void seek(std::uint64_t block);

  std::uint64_t seed_;
  std::uint32_t stream_;
  std::uint64_t block_ = ~std::uint64_t{0};
  std::array<std::uint32_t, 4> words_{};
  std::array<float, 4> normals_{};
};

/// The value of one element, by its place in a dense traversal.
using ElementValue = std::function<float(RandomStream&, std::uint64_t index)>;

/// Stores value(stream, i), rounded to the view's type, in every element i. Large tensors are
/// filled by all cores.
void fill(const TensorView& view, const RandomStream& stream, const ElementValue& value);

}  // namespace strobe::lab
