#include "support/tensors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "strobe/dropout.h"

namespace strobe::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<std::int64_t> rows_shape(const Problem& problem, std::int64_t total,
                                     std::int64_t length, std::int64_t heads, std::int64_t dim) {
  if (problem.varlen()) return {total, heads, dim};
  return {problem.batch, length, heads, dim};
}

Tensor offsets(const std::vector<std::int64_t>& lengths) {
  Tensor result(DType::int32, {static_cast<std::int64_t>(lengths.size()) + 1});
  std::int64_t end = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    end += lengths[i];
    result.set(static_cast<std::int64_t>(i) + 1, static_cast<float>(end));
  }
  return result;
}

}  // namespace

Tensor::Tensor(DType dtype, std::vector<std::int64_t> shape, float value)
    : dtype_(dtype),
      shape_(std::move(shape)),
      size_(std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>())),
      storage_(std::max<std::size_t>(1, size_ * size_of(dtype))) {
  fill(value);
}

Tensor::Tensor(DType dtype, std::vector<std::int64_t> shape, const std::vector<float>& values)
    : Tensor(dtype, std::move(shape)) {
  for (std::int64_t i = 0; i < size_; ++i) set(i, values.at(i));
}

float Tensor::operator[](std::int64_t index) const {
  if (index < 0 || index >= size_) throw std::out_of_range("Tensor");
  return load_element(storage_.data(), index, dtype_);
}

void Tensor::set(std::int64_t index, float value) {
  if (index < 0 || index >= size_) throw std::out_of_range("Tensor");
  store_element(storage_.data(), index, dtype_, value);
}

void Tensor::fill(float value) {
  for (std::int64_t i = 0; i < size_; ++i) set(i, value);
}

TensorView Tensor::view() {
  if (storage_.empty()) return {};
  TensorView view{
      .data = storage_.data(), .dtype = dtype_, .rank = static_cast<int>(shape_.size())};
  std::int64_t stride = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.shape[axis] = shape_[axis];
    view.strides[axis] = stride;
    stride *= shape_[axis];
  }
  return view;
}

void fill_random(Tensor& tensor, std::uint64_t seed, float limit) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const auto words =
        philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, 0},
               {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    const float uniform = static_cast<float>(words[0] >> 8) * 0x1p-23F - 1;  // [-1, 1)
    tensor.set(i, std::floor(uniform * limit * 0x1p8F) * 0x1p-8F);
  }
}

Tensors Operands::views() {
  return {.q = q.view(),
          .k = k.view(),
          .v = v.view(),
          .out = out.view(),
          .lse = lse.view(),
          .bias = bias.view(),
          .sinks = sinks.view(),
          .alibi_slopes = alibi_slopes.view(),
          .cu_seqlens_q = cu_seqlens_q.view(),
          .cu_seqlens_k = cu_seqlens_k.view(),
          .dout = dout.view(),
          .dq = dq.view(),
          .dk = dk.view(),
          .dv = dv.view(),
          .dbias = dbias.view(),
          .dsinks = dsinks.view()};
}

Operands make_operands(const Problem& problem, std::uint64_t seed) {
  const DType dtype = problem.dtype;
  const bool backward = problem.pass == Pass::backward;
  const auto queries = [&](std::int64_t dim) {
    return rows_shape(problem, problem.total_q(), problem.seqlen_q, problem.heads, dim);
  };
  const auto keys = [&](std::int64_t dim) {
    return rows_shape(problem, problem.total_k(), problem.keys(), problem.kv_heads(), dim);
  };
  Operands operands;
  const auto input = [&](Tensor& tensor, DType type, std::vector<std::int64_t> shape) {
    tensor = Tensor(type, std::move(shape));
    fill_random(tensor, seed++);
  };

  input(operands.q, dtype, queries(problem.dim));
  input(operands.k, dtype, keys(problem.dim));
  input(operands.v, dtype, keys(problem.value_dim()));
  if (backward) input(operands.dout, dtype, queries(problem.value_dim()));
  std::vector<std::int64_t> bias_shape;
  if (problem.bias) {
    bias_shape = {problem.bias->per_batch ? problem.batch : 1,
                  problem.bias->per_head ? problem.heads : 1,
                  problem.bias->per_query ? problem.seqlen_q : 1, problem.keys()};
    input(operands.bias, dtype, bias_shape);
  }
  if (problem.sinks) input(operands.sinks, DType::fp32, {problem.heads});
  if (problem.alibi) {
    operands.alibi_slopes = Tensor(DType::fp32, {problem.heads});
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      operands.alibi_slopes.set(h, std::ldexp(1.0F, -1 - static_cast<int>(h)));
    }
  }
  if (problem.varlen()) {
    operands.cu_seqlens_q = offsets(problem.lengths_q);
    operands.cu_seqlens_k = offsets(problem.lengths_k);
  }

  operands.out = Tensor(dtype, queries(problem.value_dim()), kNaN);
  operands.lse = problem.varlen()
                     ? Tensor(DType::fp32, {problem.heads, problem.total_q()}, kNaN)
                     : Tensor(DType::fp32, {problem.batch, problem.heads, problem.seqlen_q}, kNaN);
  if (backward) {
    operands.dq = Tensor(dtype, queries(problem.dim), kNaN);
    operands.dk = Tensor(dtype, keys(problem.dim), kNaN);
    operands.dv = Tensor(dtype, keys(problem.value_dim()), kNaN);
    if (problem.bias) operands.dbias = Tensor(dtype, bias_shape, kNaN);
    if (problem.sinks) operands.dsinks = Tensor(DType::fp32, {problem.heads}, kNaN);
  }
  return operands;
}

void run(const Implementation& implementation, const Problem& problem, const Tensors& tensors,
         int threads) {
  const Plan plan = implementation.plan(problem, {.threads = threads});
  std::vector<std::byte> memory(plan.workspace_bytes + 64, std::byte{0xFF});
  void* workspace = memory.data();
  std::size_t space = memory.size();
  std::align(64, plan.workspace_bytes, workspace, space);
  implementation.run(plan, tensors, workspace, plan.workspace_bytes);
}

}  // namespace strobe::test
