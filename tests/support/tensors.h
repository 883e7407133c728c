#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strobe/implementation.h"

namespace strobe::test {

/// A dense tensor that owns its memory. A default one is "not given".
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, std::vector<std::int64_t> shape, float fill = 0);
  Tensor(DType dtype, std::vector<std::int64_t> shape, const std::vector<float>& values);

  std::int64_t size() const { return size_; }
  float operator[](std::int64_t index) const;
  void set(std::int64_t index, float value);
  void fill(float value);

  TensorView view();
  const std::vector<std::byte>& bytes() const { return storage_; }

 private:
  DType dtype_ = DType::fp32;
  std::vector<std::int64_t> shape_{};
  std::int64_t size_ = 0;
  std::vector<std::byte> storage_{};
};

/// Multiples of 2^-8 in [-limit, limit), a function of the seed alone.
void fill_random(Tensor& tensor, std::uint64_t seed, float limit = 1);

/// The memory of every operand of a problem.
struct Operands {
  Tensor q{}, k{}, v{}, out{}, lse{};
  Tensor bias{}, sinks{}, alibi_slopes{}, cu_seqlens_q{}, cu_seqlens_k{};
  Tensor dout{}, dq{}, dk{}, dv{}, dbias{}, dsinks{};

  Tensors views();
};

/// Random inputs, slopes of 2^-1, 2^-2, ..., outputs full of NaN.
Operands make_operands(const Problem& problem, std::uint64_t seed);

/// Plans and runs with a workspace full of NaN.
void run(const Implementation& implementation, const Problem& problem, const Tensors& tensors,
         int threads = 0);

}  // namespace strobe::test
