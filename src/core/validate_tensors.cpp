#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <span>

#include "core/extent.h"
#include "core/text.h"
#include "core/wide.h"
#include "strobe/error.h"
#include "strobe/implementation.h"

namespace strobe {
namespace {

// Checks run before every call and allocate nothing unless they fail.

/// Expected sizes, at most as many as a view has axes.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : count_(sizes.size()) {
    std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  }
  std::span<const std::int64_t> sizes() const { return std::span(sizes_).first(count_); }

 private:
  std::array<std::int64_t, TensorView::kMaxRank> sizes_{};
  std::size_t count_ = 0;
};

/// A tensor of the call under the name that errors give it. Where it lies is reckoned once, and not
/// for every other tensor that it might overlap.
struct Operand {
  Operand() = default;
  Operand(const char* its_name, const TensorView* its_view)
      : name(its_name), view(its_view), extent(*its_view) {}

  const char* name = "";
  const TensorView* view = nullptr;
  Extent extent{};
};

class OperandList {
 public:
  void add(const Operand& operand) { all_[count_++] = operand; }
  std::span<const Operand> all() const { return std::span(all_).first(count_); }

 private:
  std::array<Operand, 16> all_{};  // there are sixteen tensors
  std::size_t count_ = 0;
};

bool overlap(const Operand& a, const Operand& b) {
  return a.extent.meets(b.extent) && overlap(*a.view, *b.view);
}

bool is_empty(const Shape& shape) {
  const auto sizes = shape.sizes();
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

bool matches(const TensorView& view, const Shape& shape) {
  const auto sizes = shape.sizes();
  return view.rank == static_cast<int>(sizes.size()) &&
         std::equal(sizes.begin(), sizes.end(), view.shape.begin());
}

/// The last byte must be at a distance that 64-bit arithmetic reaches.
void check_reach(const char* name, const TensorView& view) {
  Wide reach = 0;
  for (int axis = 0; axis < view.rank; ++axis) {
    const Wide stride = view.strides[axis];
    reach += (stride < 0 ? -stride : stride) * std::max<std::int64_t>(view.shape[axis] - 1, 0);
  }
  if (reach > (std::int64_t{1} << 58)) {
    throw InvalidArgument(name, "has strides that reach beyond what can be addressed");
  }
}

class Checker {
 public:
  explicit Checker(Device device) : device_(device) {}

  /// Shape, dtype, device, data, strides of one tensor.
  void check(const char* name, const TensorView& view, DType dtype, const Shape& shape) const {
    if (view.data == nullptr && !is_empty(shape)) {
      throw InvalidArgument(name, concat("is null; ", name_of(dtype), "[",
                                         joined(shape.sizes(), ", "), "] is needed"));
    }
    if (!matches(view, shape) || view.dtype != dtype) {
      throw InvalidArgument(name, concat("is ", view.describe(), ", the problem needs ",
                                         name_of(dtype), "[", joined(shape.sizes(), ", "), "]"));
    }
    check_memory(name, view);
  }

 private:
  void check_memory(const char* name, const TensorView& view) const {
    if (!share_memory(view.device, device_)) {
      throw InvalidArgument(name, concat("is on ", to_string(view.device),
                                         ", the plan was made for ", to_string(device_),
                                         "; all tensors of a call must be where it was made for"));
    }
    if (reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype) != 0) {
      throw InvalidArgument(
          name, concat("must be aligned to its element size of ", size_of(view.dtype), " bytes"));
    }
    if (view.rank > 0 && view.shape[view.rank - 1] > 1 && view.strides[view.rank - 1] != 1) {
      throw InvalidArgument(name, concat("has stride ", view.strides[view.rank - 1],
                                         " on its last axis, which must be contiguous (1)"));
    }
    check_reach(name, view);
  }

  Device device_;
};

/// Rows of a packed variable-length tensor: whatever the caller brought, up to the problem's total.
std::int64_t packed_rows(const char* name, const TensorView& view, std::int64_t total) {
  const std::int64_t rows = view.rank > 0 ? view.shape[0] : 0;
  if (rows < 0 || rows > total) {
    throw InvalidArgument(name,
                          concat("has ", rows, " rows, the problem's lengths add up to ", total));
  }
  return rows;
}

/// Offsets that the host can read are checked here, so that no kernel reads wildly.
void check_offsets(const char* name, const TensorView& offsets, std::int64_t longest,
                   const char* longest_name, std::int64_t rows) {
  if (offsets.device.kind != Device::Kind::cpu) return;
  const auto* values = static_cast<const std::int32_t*>(offsets.data);
  if (values[0] != 0)
    throw InvalidArgument(name, concat("starts at ", values[0], ", it must start at 0"));
  for (std::int64_t i = 1; i < offsets.shape[0]; ++i) {
    const std::int64_t length = std::int64_t{values[i]} - values[i - 1];
    if (length < 0) {
      throw InvalidArgument(name, concat("falls from ", values[i - 1], " to ", values[i],
                                         " at position ", i, ", it must not decrease"));
    }
    if (length > longest) {
      throw InvalidArgument(name, concat("gives sequence ", i - 1, " a length of ", length,
                                         ", longer than ", longest_name, " = ", longest));
    }
  }
  if (values[offsets.shape[0] - 1] > rows) {
    throw InvalidArgument(name, concat("ends at ", values[offsets.shape[0] - 1], ", past the ",
                                       rows, " rows of the tensor"));
  }
}

void check_overlap(std::span<const Operand> outputs, std::span<const Operand> inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (overlaps_itself(*outputs[i].view)) {
      throw InvalidArgument(outputs[i].name,
                            "is written and must not have two elements in one place "
                            "(an expanded axis or overlapping strides)");
    }
    for (std::size_t j = i + 1; j < outputs.size(); ++j) {
      if (overlap(outputs[i], outputs[j])) {
        throw InvalidArgument(outputs[i].name, concat("overlaps ", outputs[j].name,
                                                      " in memory, outputs must be apart"));
      }
    }
    for (const auto& input : inputs) {
      if (overlap(outputs[i], input)) {
        throw InvalidArgument(outputs[i].name,
                              concat("overlaps the input ", input.name, " in memory"));
      }
    }
  }
}

/// The tensors of one call. Those that the problem uses are checked and kept, to see in the end
/// whether outputs overlap anything; the others may be anything anywhere.
class Call {
 public:
  Call(const Problem& problem, const Tensors& tensors, Device device)
      : problem_(problem),
        tensors_(tensors),
        checker_(device),
        rows_q_(problem.varlen() ? packed_rows("q", tensors.q, problem.total_q()) : 0),
        rows_k_(problem.varlen() ? packed_rows("k", tensors.k, problem.total_k()) : 0) {}

  /// What the passes compute with, and what the forward pass leaves.
  void check_rows() {
    input("q", tensors_.q, problem_.dtype, query_shape(problem_.dim));
    input("k", tensors_.k, problem_.dtype, key_shape(problem_.dim));
    input("v", tensors_.v, problem_.dtype, key_shape(problem_.value_dim()));
    const Shape out = query_shape(problem_.value_dim());
    if (problem_.pass == Pass::backward) {
      input("out", tensors_.out, problem_.dtype, out);
      input("lse", tensors_.lse, DType::fp32, lse_shape());
    } else {
      output("out", tensors_.out, problem_.dtype, out);
      if (tensors_.lse.given()) output("lse", tensors_.lse, DType::fp32, lse_shape());
    }
  }

  void check_features() {
    if (problem_.varlen()) check_all_offsets();
    if (problem_.bias) input("bias", tensors_.bias, problem_.dtype, bias_shape());
    if (problem_.sinks) input("sinks", tensors_.sinks, DType::fp32, {problem_.heads});
    if (problem_.alibi) {
      input("alibi_slopes", tensors_.alibi_slopes, DType::fp32,
            tensors_.alibi_slopes.rank == 2 ? Shape{problem_.batch, problem_.heads}
                                            : Shape{problem_.heads});
    }
  }

  /// Of the backward pass.
  void check_gradients() {
    input("dout", tensors_.dout, problem_.dtype, query_shape(problem_.value_dim()));
    output("dq", tensors_.dq, problem_.dtype, query_shape(problem_.dim));
    output("dk", tensors_.dk, problem_.dtype, key_shape(problem_.dim));
    output("dv", tensors_.dv, problem_.dtype, key_shape(problem_.value_dim()));
    if (tensors_.dbias.given()) {
      if (!problem_.bias) throw InvalidArgument("dbias", "is given, but the problem has no bias");
      output("dbias", tensors_.dbias, problem_.dtype, bias_shape());
    }
    if (tensors_.dsinks.given()) {
      if (!problem_.sinks)
        throw InvalidArgument("dsinks", "is given, but the problem has no sinks");
      output("dsinks", tensors_.dsinks, DType::fp32, {problem_.heads});
    }
  }

  void check_overlaps() const { check_overlap(outputs_.all(), inputs_.all()); }

 private:
  void input(const char* name, const TensorView& view, DType dtype, const Shape& shape) {
    checker_.check(name, view, dtype, shape);
    inputs_.add({name, &view});
  }

  void output(const char* name, const TensorView& view, DType dtype, const Shape& shape) {
    checker_.check(name, view, dtype, shape);
    outputs_.add({name, &view});
  }

  void check_all_offsets() {
    const Shape shape = {problem_.batch + 1};
    input("cu_seqlens_q", tensors_.cu_seqlens_q, DType::int32, shape);
    input("cu_seqlens_k", tensors_.cu_seqlens_k, DType::int32, shape);
    check_offsets("cu_seqlens_q", tensors_.cu_seqlens_q, problem_.seqlen_q, "seqlen_q", rows_q_);
    check_offsets("cu_seqlens_k", tensors_.cu_seqlens_k, problem_.keys(), "seqlen_k", rows_k_);
  }

  /// [batch, seqlen, heads, dim], or [rows, heads, dim] with variable lengths.
  Shape query_shape(std::int64_t dim) const {
    if (problem_.varlen()) return {rows_q_, problem_.heads, dim};
    return {problem_.batch, problem_.seqlen_q, problem_.heads, dim};
  }

  Shape key_shape(std::int64_t dim) const {
    if (problem_.varlen()) return {rows_k_, problem_.kv_heads(), dim};
    return {problem_.batch, problem_.keys(), problem_.kv_heads(), dim};
  }

  Shape lse_shape() const {
    if (problem_.varlen()) return {problem_.heads, rows_q_};
    return {problem_.batch, problem_.heads, problem_.seqlen_q};
  }

  Shape bias_shape() const {
    const Bias& bias = *problem_.bias;
    return {bias.per_batch ? problem_.batch : 1, bias.per_head ? problem_.heads : 1,
            bias.per_query ? problem_.seqlen_q : 1, problem_.keys()};
  }

  const Problem& problem_;
  const Tensors& tensors_;
  Checker checker_;
  std::int64_t rows_q_;  ///< with variable lengths
  std::int64_t rows_k_;
  OperandList inputs_{};
  OperandList outputs_{};
};

}  // namespace

void validate(const Problem& problem, const Tensors& tensors, Device device) {
  Call call(problem, tensors, device);
  call.check_rows();
  call.check_features();
  if (problem.pass == Pass::backward) call.check_gradients();
  call.check_overlaps();
}

}  // namespace strobe
