#include "verify/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

/// a * b for sizes, OutOfMemory where no address could reach that far.
std::int64_t checked_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw OutOfMemory(fmt::format("a tensor of {} x {} elements cannot be addressed", a, b));
  }
  return product;
}

std::vector<std::int64_t> operator+(std::vector<std::int64_t> shape,
                                    const std::vector<std::int64_t>& more) {
  shape.insert(shape.end(), more.begin(), more.end());
  return shape;
}

}  // namespace

Placement::Placement(const Case& what, std::vector<Allocation>& owners)
    : problem_(what.problem), storage_(what.inputs.storage), owners_(owners) {
  if (storage_ == Storage::expanded && problem_.varlen()) {
    throw InvalidArgument("storage",
                          "is expanded, which needs a batch axis and so a problem without "
                          "variable lengths");
  }
}

Placement::Arrangement Placement::arrangement() const {
  switch (storage_) {
    case Storage::transposed:
      return {.heads_outside = true};
    case Storage::sliced:
      return {.offset = 1, .row_padding = 3};
    default:
      return {};
  }
}

/// The leading axes of a tensor with one entry for each token.
Placement::Shape Placement::tokens(bool of_keys) const {
  if (problem_.varlen()) return {of_keys ? problem_.total_k() : problem_.total_q()};
  return {problem_.batch, of_keys ? problem_.keys() : problem_.seqlen_q};
}

TensorView Placement::place(const std::string& name, DType dtype, const Shape& shape,
                            const Arrangement& where) {
  TensorView view{.dtype = dtype, .rank = static_cast<int>(shape.size())};
  std::copy(shape.begin(), shape.end(), view.shape.begin());

  // Axes from the innermost outwards.
  std::vector<int> order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  if (where.heads_outside) {
    const int sequence_axis = problem_.varlen() ? 0 : 1;
    std::erase(order, sequence_axis);
    order.insert(order.begin() + 1, sequence_axis);
  }
  std::int64_t extent = 1;
  for (const int axis : order) {
    const bool repeated = where.expanded && axis == 0;
    view.strides[axis] = repeated ? 0 : extent;
    if (!repeated) extent = checked_product(extent, view.shape[axis]);
    if (axis == order.front()) extent += where.row_padding;
  }

  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t bytes = checked_product(extent + where.offset, element);
  owners_.push_back({name, Buffer(static_cast<std::size_t>(bytes))});
  view.data = owners_.back().buffer.data() + where.offset * element;
  return view;
}

void Placement::sequences(const std::string& prefix, bool expand_keys, TensorView& q, TensorView& k,
                          TensorView& v) {
  const std::int64_t heads = problem_.heads;
  const std::int64_t kv_heads = problem_.kv_heads();
  const std::int64_t dim = problem_.dim;
  const DType dtype = problem_.dtype;
  const Arrangement where = arrangement();
  if (problem_.layout == Layout::qkvpacked) {
    const auto parts =
        split_qkv(place(prefix + "qkv", dtype, tokens(false) + Shape{3, heads, dim}, where));
    q = parts[0], k = parts[1], v = parts[2];
    return;
  }
  Arrangement keys_where = where;
  keys_where.expanded = expand_keys && storage_ == Storage::expanded;
  q = place(prefix + "q", dtype, tokens(false) + Shape{heads, dim}, where);
  if (problem_.layout == Layout::kvpacked) {
    const auto parts =
        split_kv(place(prefix + "kv", dtype, tokens(true) + Shape{2, kv_heads, dim}, keys_where));
    k = parts[0], v = parts[1];
    return;
  }
  k = place(prefix + "k", dtype, tokens(true) + Shape{kv_heads, dim}, keys_where);
  v = place(prefix + "v", dtype, tokens(true) + Shape{kv_heads, problem_.value_dim()}, keys_where);
}

TensorView Placement::query_like(const char* name) {
  return place(name, problem_.dtype, tokens(false) + Shape{problem_.heads, problem_.value_dim()},
               arrangement());
}

TensorView Placement::strided_dout() {
  return place("dout", problem_.dtype, tokens(false) + Shape{problem_.heads, problem_.value_dim()},
               {.heads_outside = true, .row_padding = 5});
}

TensorView Placement::lse() {
  const Shape shape = problem_.varlen() ? Shape{problem_.heads, problem_.total_q()}
                                        : Shape{problem_.batch, problem_.heads, problem_.seqlen_q};
  Arrangement where = arrangement();
  where.heads_outside = false;  // they are already
  return place("lse", DType::fp32, shape, where);
}

TensorView Placement::bias(const char* name) {
  const Bias& axes = *problem_.bias;
  Arrangement where = arrangement();
  where.heads_outside = false;
  return place(name, problem_.dtype,
               {axes.per_batch ? problem_.batch : 1, axes.per_head ? problem_.heads : 1,
                axes.per_query ? problem_.seqlen_q : 1, problem_.keys()},
               where);
}

TensorView Placement::plain(const char* name, DType dtype, const std::vector<std::int64_t>& shape) {
  return place(name, dtype, shape, {});
}

TensorView Placement::offsets(const char* name, const std::vector<std::int64_t>& lengths) {
  const TensorView view =
      plain(name, DType::int32, {static_cast<std::int64_t>(lengths.size()) + 1});
  auto* offset = static_cast<std::int32_t*>(view.data);
  *offset = 0;
  for (const std::int64_t length : lengths) {
    offset[1] = static_cast<std::int32_t>(*offset + length);
    ++offset;
  }
  return view;
}

}  // namespace strobe::lab
