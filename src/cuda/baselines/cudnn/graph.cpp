#include "cuda/baselines/cudnn/graph.h"

#include <cstring>
#include <utility>

namespace strobe::cuda::cudnn {
namespace {

using abi::Attribute;
using abi::DataType;
using abi::DescriptorKind;
using abi::PointwiseMode;

/// Of every address and every row.
constexpr std::int64_t kAlignment = 16;

}  // namespace

Axes dense(const Axes& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
}

Axes transposed(const Axes& axes) {
  return {axes[0], axes[1], axes[3], axes[2]};
}

Tensor Graph::add_tensor(std::int64_t id, const Axes& sizes, const Axes& strides, DataType type,
                         Place place) {
  Descriptor descriptor(library_, DescriptorKind::tensor);
  descriptor.set(Attribute::tensor_type, type);
  descriptor.set(Attribute::tensor_sizes, std::span<const std::int64_t>(sizes));
  descriptor.set(Attribute::tensor_strides, std::span<const std::int64_t>(strides));
  descriptor.set(Attribute::tensor_id, id);
  descriptor.set(Attribute::tensor_alignment, kAlignment);
  if (place == Place::nowhere) descriptor.set(Attribute::tensor_is_virtual, true);
  if (place == Place::host) descriptor.set(Attribute::tensor_is_by_value, true);
  return {id, sizes, strides, type, keep(std::move(descriptor))};
}

abi::Descriptor Graph::keep(Descriptor descriptor) {
  descriptor.finalize();
  return kept_.emplace_back(std::move(descriptor)).get();
}

void Graph::add_operation(Descriptor descriptor) {
  operations_.push_back(keep(std::move(descriptor)));
}

Tensor Graph::operand(std::int64_t id, const Axes& sizes, const Axes& strides, DataType type) {
  return add_tensor(id, sizes, strides, type, Place::memory);
}

Tensor Graph::virtual_tensor(const Axes& sizes, const Axes& strides, DataType type) {
  return add_tensor(next_id_++, sizes, strides, type, Place::nowhere);
}

template <class Number>
Tensor Graph::add_constant(Number value, DataType type) {
  static_assert(sizeof value == sizeof Constant::bytes);
  Constant constant{.id = next_id_++, .bytes = {}};
  std::memcpy(constant.bytes.data(), &value, sizeof value);
  constants_.push_back(constant);
  return add_tensor(constant.id, {1, 1, 1, 1}, {1, 1, 1, 1}, type, Place::host);
}

Tensor Graph::constant(float value) {
  return add_constant(value, DataType::fp32);
}

Tensor Graph::constant(std::int32_t value) {
  return add_constant(value, DataType::int32);
}

Tensor Graph::multiply_matrices(const Tensor& a, const Tensor& b) {
  const Axes sizes = {a.sizes[0], a.sizes[1], a.sizes[2], b.sizes[3]};
  const Tensor to = virtual_tensor(sizes, dense(sizes), DataType::fp32);
  multiply_matrices(a, b, to);
  return to;
}

void Graph::multiply_matrices(const Tensor& a, const Tensor& b, const Tensor& to) {
  Descriptor product(library_, DescriptorKind::matmul);
  product.set(Attribute::matmul_precision, DataType::fp32);
  Descriptor operation(library_, DescriptorKind::matmul_operation);
  operation.set(Attribute::matmul_operation_a, a.descriptor);
  operation.set(Attribute::matmul_operation_b, b.descriptor);
  operation.set(Attribute::matmul_operation_c, to.descriptor);
  operation.set(Attribute::matmul_operation_descriptor, keep(std::move(product)));
  add_operation(std::move(operation));
}

Descriptor Graph::pointwise_mode(PointwiseMode mode, DataType precision) const {
  Descriptor descriptor(library_, DescriptorKind::pointwise);
  descriptor.set(Attribute::pointwise_mode, mode);
  descriptor.set(Attribute::pointwise_precision, precision);
  return descriptor;
}

void Graph::add_pointwise(Descriptor mode, const PointwiseOperands& operands) {
  Descriptor operation(library_, DescriptorKind::pointwise_operation);
  operation.set(Attribute::pointwise_operation_descriptor, keep(std::move(mode)));
  operation.set(Attribute::pointwise_operation_x, operands.x.descriptor);
  if (operands.b != nullptr)
    operation.set(Attribute::pointwise_operation_b, operands.b->descriptor);
  if (operands.t != nullptr)
    operation.set(Attribute::pointwise_operation_t, operands.t->descriptor);
  operation.set(Attribute::pointwise_operation_y, operands.y.descriptor);
  add_operation(std::move(operation));
}

Tensor Graph::pointwise(PointwiseMode mode, const Tensor& x, const Tensor* b) {
  const Tensor to = virtual_tensor(x.sizes, dense(x.sizes), DataType::fp32);
  pointwise_into(mode, x, b, to);
  return to;
}

void Graph::pointwise_into(PointwiseMode mode, const Tensor& x, const Tensor* b, const Tensor& to) {
  add_pointwise(pointwise_mode(mode, DataType::fp32), {x, b, nullptr, to});
}

Tensor Graph::index(const Tensor& like, std::int64_t axis) {
  const Tensor to = virtual_tensor(like.sizes, like.strides, DataType::int32);
  Descriptor mode = pointwise_mode(PointwiseMode::index, DataType::fp32);
  mode.set(Attribute::pointwise_axis, axis);
  add_pointwise(std::move(mode), {like, nullptr, nullptr, to});
  return to;
}

Tensor Graph::pointwise_of_indices(PointwiseMode mode, const Tensor& x, const Tensor& b) {
  const Tensor to = virtual_tensor(x.sizes, x.strides, DataType::int32);
  add_pointwise(pointwise_mode(mode, DataType::int32), {x, &b, nullptr, to});
  return to;
}

Tensor Graph::where_at_least(const Tensor& left, const Tensor& right, const Tensor& x,
                             const Tensor& other) {
  const Tensor chosen = virtual_tensor(x.sizes, x.strides, DataType::boolean);
  add_pointwise(pointwise_mode(PointwiseMode::greater_or_equal, DataType::boolean),
                {left, &right, nullptr, chosen});
  const Tensor to = virtual_tensor(x.sizes, x.strides, DataType::fp32);
  add_pointwise(pointwise_mode(PointwiseMode::select, DataType::fp32), {x, &other, &chosen, to});
  return to;
}

void Graph::reduce(abi::ReductionOperator how, const Tensor& x, const Tensor& to) {
  Descriptor reduction(library_, DescriptorKind::reduction);
  reduction.set(Attribute::reduction_operator, how);
  reduction.set(Attribute::reduction_precision, DataType::fp32);
  Descriptor operation(library_, DescriptorKind::reduction_operation);
  operation.set(Attribute::reduction_operation_x, x.descriptor);
  operation.set(Attribute::reduction_operation_y, to.descriptor);
  operation.set(Attribute::reduction_operation_descriptor, keep(std::move(reduction)));
  add_operation(std::move(operation));
}

Tensor Graph::reduce_rows(abi::ReductionOperator how, const Tensor& x) {
  const Axes sizes = {x.sizes[0], x.sizes[1], x.sizes[2], 1};
  const Tensor to = virtual_tensor(sizes, dense(sizes), DataType::fp32);
  reduce(how, x, to);
  return to;
}

Tensor Graph::transpose(const Tensor& x, DataType type) {
  const Tensor to = virtual_tensor(transposed(x.sizes), transposed(x.strides), type);
  Descriptor operation(library_, DescriptorKind::reshape_operation);
  operation.set(Attribute::reshape_operation_x, x.descriptor);
  operation.set(Attribute::reshape_operation_y, to.descriptor);
  add_operation(std::move(operation));
  return to;
}

abi::Descriptor Graph::finalize(abi::Handle handle) {
  Descriptor graph(library_, DescriptorKind::operation_graph);
  graph.set(Attribute::graph_operations, std::span<const abi::Descriptor>(operations_));
  if (handle != nullptr) graph.set(Attribute::graph_handle, handle);
  return keep(std::move(graph));
}

}  // namespace strobe::cuda::cudnn
