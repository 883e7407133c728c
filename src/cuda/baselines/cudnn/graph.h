#pragma once

#include <array>
#include <vector>

#include "cuda/baselines/cudnn/descriptor.h"

namespace strobe::cuda::cudnn {

/// Sizes or strides of [batch, heads, rows, columns].
using Axes = std::array<std::int64_t, 4>;

/// Strides of a dense tensor.
Axes dense(const Axes& sizes);

/// With rows and columns changed places.
Axes transposed(const Axes& axes);

/// A value in a graph.
struct Tensor {
  std::int64_t id = 0;
  Axes sizes{};
  Axes strides{};
  abi::DataType type{};
  abi::Descriptor descriptor{};
};

/// Operations over tensors, as cuDNN takes them. All is computed in fp32 but for indices and
/// comparisons. Tensors that nobody names are virtual: they have no place in memory.
class Graph {
 public:
  explicit Graph(const Library& library) : library_(library) {}

  /// An operand that each execution has the address of, under this number.
  Tensor operand(std::int64_t id, const Axes& sizes, const Axes& strides, abi::DataType type);

  Tensor constant(float value);
  Tensor constant(std::int32_t value);

  Tensor multiply_matrices(const Tensor& a, const Tensor& b);
  void multiply_matrices(const Tensor& a, const Tensor& b, const Tensor& to);

  /// Of the size of `x`; `b` may be broadcast.
  Tensor pointwise(abi::PointwiseMode mode, const Tensor& x, const Tensor* b = nullptr);
  void pointwise_into(abi::PointwiseMode mode, const Tensor& x, const Tensor* b, const Tensor& to);

  /// Whole numbers: the index along an axis, and sums and differences of them.
  Tensor index(const Tensor& like, std::int64_t axis);
  Tensor pointwise_of_indices(abi::PointwiseMode mode, const Tensor& x, const Tensor& b);

  /// x where `left` is at least `right`, indices both, elsewhere `other`.
  Tensor where_at_least(const Tensor& left, const Tensor& right, const Tensor& x,
                        const Tensor& other);

  /// Along the axes in which `to` has size 1, or fewer heads.
  void reduce(abi::ReductionOperator how, const Tensor& x, const Tensor& to);
  /// Along the columns.
  Tensor reduce_rows(abi::ReductionOperator how, const Tensor& x);

  /// The same elements with rows and columns changed places.
  Tensor transpose(const Tensor& x, abi::DataType type);

  Tensor virtual_tensor(const Axes& sizes, const Axes& strides, abi::DataType type);

  struct Constant {
    std::int64_t id;
    std::array<char, 4> bytes;
  };
  const std::vector<Constant>& constants() const { return constants_; }

  /// Ends it. `handle` may be null where plans are made for a device that is not here.
  abi::Descriptor finalize(abi::Handle handle);

 private:
  enum class Place { memory, nowhere, host };

  Tensor add_tensor(std::int64_t id, const Axes& sizes, const Axes& strides, abi::DataType type,
                    Place place);
  template <class Number>
  Tensor add_constant(Number value, abi::DataType type);
  /// Finalizes a descriptor, which then lives as long as the graph.
  abi::Descriptor keep(Descriptor descriptor);
  void add_operation(Descriptor descriptor);
  struct PointwiseOperands {
    const Tensor& x;
    const Tensor* b;
    const Tensor* t;
    const Tensor& y;
  };
  void add_pointwise(Descriptor mode, const PointwiseOperands& operands);
  Descriptor pointwise_mode(abi::PointwiseMode mode, abi::DataType precision) const;

  const Library& library_;
  std::vector<Descriptor> kept_{};
  std::vector<abi::Descriptor> operations_{};
  std::vector<Constant> constants_{};
  std::int64_t next_id_ = 1000;  ///< beyond those of operands
};

}  // namespace strobe::cuda::cudnn
