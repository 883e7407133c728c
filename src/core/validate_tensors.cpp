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
  Operand(const char* its_name, const TensorView* its_view)
      : name(its_name), view(its_view), extent(*its_view) {}

  const char* name;
  const TensorView* view;
  Extent extent;
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

  void check_optional(const char* name, const TensorView& view, DType dtype,
                      const Shape& shape) const {
    if (view.given()) check(name, view, dtype, shape);
  }

 private:
  void check_memory(const char* name, const TensorView& view) const {
    if (view.device.kind != device_.kind || (on_gpu() && view.device.index != device_.index)) {
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

  bool on_gpu() const { return device_.kind != Device::Kind::cpu; }

  Device device_;
};

/// [batch, seqlen, heads, dim], or [rows, heads, dim] with variable lengths.
Shape rows_shape(const Problem& problem, std::int64_t seqlen, std::int64_t rows, std::int64_t heads,
                 std::int64_t dim) {
  if (problem.varlen()) return {rows, heads, dim};
  return {problem.batch, seqlen, heads, dim};
}

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

}  // namespace

void validate(const Problem& problem, const Tensors& tensors, Device device) {
  const Checker checker(device);
  const bool varlen = problem.varlen();
  const bool backward = problem.pass == Pass::backward;
  const std::int64_t rows_q = varlen ? packed_rows("q", tensors.q, problem.total_q()) : 0;
  const std::int64_t rows_k = varlen ? packed_rows("k", tensors.k, problem.total_k()) : 0;
  const auto query_shape = [&](std::int64_t dim) {
    return rows_shape(problem, problem.seqlen_q, rows_q, problem.heads, dim);
  };
  const auto key_shape = [&](std::int64_t dim) {
    return rows_shape(problem, problem.keys(), rows_k, problem.kv_heads(), dim);
  };
  const Shape q = query_shape(problem.dim);
  const Shape out = query_shape(problem.value_dim());
  const Shape k = key_shape(problem.dim);
  const Shape v = key_shape(problem.value_dim());
  const Shape lse =
      varlen ? Shape{problem.heads, rows_q} : Shape{problem.batch, problem.heads, problem.seqlen_q};

  checker.check("q", tensors.q, problem.dtype, q);
  checker.check("k", tensors.k, problem.dtype, k);
  checker.check("v", tensors.v, problem.dtype, v);
  checker.check("out", tensors.out, problem.dtype, out);
  if (backward)
    checker.check("lse", tensors.lse, DType::fp32, lse);
  else
    checker.check_optional("lse", tensors.lse, DType::fp32, lse);

  if (varlen) {
    checker.check("cu_seqlens_q", tensors.cu_seqlens_q, DType::int32, {problem.batch + 1});
    checker.check("cu_seqlens_k", tensors.cu_seqlens_k, DType::int32, {problem.batch + 1});
    check_offsets("cu_seqlens_q", tensors.cu_seqlens_q, problem.seqlen_q, "seqlen_q", rows_q);
    check_offsets("cu_seqlens_k", tensors.cu_seqlens_k, problem.keys(), "seqlen_k", rows_k);
  }
  Shape bias;
  if (problem.bias) {
    bias = {problem.bias->per_batch ? problem.batch : 1, problem.bias->per_head ? problem.heads : 1,
            problem.bias->per_query ? problem.seqlen_q : 1, problem.keys()};
    checker.check("bias", tensors.bias, problem.dtype, bias);
  }
  if (problem.sinks) checker.check("sinks", tensors.sinks, DType::fp32, {problem.heads});
  if (problem.alibi) {
    checker.check("alibi_slopes", tensors.alibi_slopes, DType::fp32,
                  tensors.alibi_slopes.rank == 2 ? Shape{problem.batch, problem.heads}
                                                 : Shape{problem.heads});
  }

  // What the problem does not use has not been checked, and may be anything anywhere.
  const TensorView not_given;
  const auto if_used = [&](bool used, const TensorView& view) { return used ? &view : &not_given; };
  const std::array inputs = {Operand{"q", &tensors.q},
                             Operand{"k", &tensors.k},
                             Operand{"v", &tensors.v},
                             Operand{"bias", if_used(problem.bias.has_value(), tensors.bias)},
                             Operand{"sinks", if_used(problem.sinks, tensors.sinks)},
                             Operand{"alibi_slopes", if_used(problem.alibi, tensors.alibi_slopes)},
                             Operand{"cu_seqlens_q", if_used(varlen, tensors.cu_seqlens_q)},
                             Operand{"cu_seqlens_k", if_used(varlen, tensors.cu_seqlens_k)},
                             Operand{"out", &tensors.out},  // from here on: backward only
                             Operand{"lse", &tensors.lse},
                             Operand{"dout", if_used(backward, tensors.dout)}};
  if (!backward) {
    const std::array outputs = {Operand{"out", &tensors.out}, Operand{"lse", &tensors.lse}};
    check_overlap(outputs, std::span(inputs).first(8));
    return;
  }
  checker.check("dout", tensors.dout, problem.dtype, out);
  checker.check("dq", tensors.dq, problem.dtype, q);
  checker.check("dk", tensors.dk, problem.dtype, k);
  checker.check("dv", tensors.dv, problem.dtype, v);
  if (tensors.dbias.given() && !problem.bias) {
    throw InvalidArgument("dbias", "is given, but the problem has no bias");
  }
  if (tensors.dsinks.given() && !problem.sinks) {
    throw InvalidArgument("dsinks", "is given, but the problem has no sinks");
  }
  checker.check_optional("dbias", tensors.dbias, problem.dtype, bias);
  checker.check_optional("dsinks", tensors.dsinks, DType::fp32, {problem.heads});
  const std::array outputs = {Operand{"dq", &tensors.dq}, Operand{"dk", &tensors.dk},
                              Operand{"dv", &tensors.dv}, Operand{"dbias", &tensors.dbias},
                              Operand{"dsinks", &tensors.dsinks}};
  check_overlap(outputs, inputs);
}

}  // namespace strobe
