#include "strobe/tensor.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "core/extent.h"
#include "core/text.h"
#include "core/wide.h"
#include "strobe/error.h"

namespace strobe {

std::string to_string(Device device) {
  return device.kind == Device::Kind::cpu ? "cpu" : concat("cuda:", device.index);
}

TensorView TensorView::contiguous(void* data, DType dtype,
                                  std::initializer_list<std::int64_t> shape, Device device) {
  if (shape.size() > kMaxRank) {
    throw InvalidArgument("shape", concat("has ", shape.size(), " axes, at most ",
                                          static_cast<int>(kMaxRank), " are allowed"));
  }
  TensorView view{.data = data, .dtype = dtype, .device = device};
  view.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), view.shape.begin());
  std::int64_t stride = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.strides[axis] = stride;
    stride *= std::max<std::int64_t>(view.shape[axis], 1);
  }
  return view;
}

std::int64_t TensorView::elements() const {
  std::int64_t count = 1;
  for (int axis = 0; axis < rank; ++axis) count *= shape[axis];
  return count;
}

TensorView TensorView::select(int axis, std::int64_t index) const {
  if (axis < 0 || axis >= rank || index < 0 || index >= shape[axis]) {
    throw InvalidArgument("index", concat(index, " on axis ", axis, " is outside ", describe()));
  }
  TensorView view = *this;
  if (!is_empty(*this)) {  // else its strides may be any numbers
    view.data = static_cast<std::byte*>(data) +
                index * strides[axis] * static_cast<std::int64_t>(size_of(dtype));
  }
  std::copy(shape.begin() + axis + 1, shape.end(), view.shape.begin() + axis);
  std::copy(strides.begin() + axis + 1, strides.end(), view.strides.begin() + axis);
  view.rank = rank - 1;
  return view;
}

TensorView TensorView::with_plain_strides() const {
  constexpr Wide kFarthest = Wide{1} << 58;  // a view that nobody has checked may be any nonsense
  TensorView view = *this;
  Wide dense = 1;
  for (int axis = std::min<int>(rank, kMaxRank) - 1; axis >= 0; --axis) {
    if (shape[axis] <= 1) view.strides[axis] = static_cast<std::int64_t>(dense);
    const Wide next = Wide{view.strides[axis]} * std::max<std::int64_t>(shape[axis], 1);
    dense = std::clamp(next, -kFarthest, kFarthest);
  }
  return view;
}

std::string TensorView::describe() const {
  const auto axes = static_cast<std::size_t>(std::clamp(rank, 0, static_cast<int>(kMaxRank)));
  return concat(name_of(dtype), "[", joined(std::span(shape).first(axes), ", "), "]");
}

namespace {

/// The axis of a packed tensor that counts its parts: the third from the end.
template <std::size_t parts>
std::array<TensorView, parts> split(const TensorView& packed, const char* field) {
  const int axis = packed.rank - 3;
  if (axis < 1 || packed.shape[axis] != static_cast<std::int64_t>(parts)) {
    throw InvalidArgument(
        field, concat("is ", packed.describe(), "; a packed tensor is [batch, seqlen, ", parts,
                      ", heads, dim] or [total, ", parts, ", heads, dim]"));
  }
  std::array<TensorView, parts> views;
  for (std::size_t part = 0; part < parts; ++part) {
    views[part] = packed.select(axis, static_cast<std::int64_t>(part));
  }
  return views;
}

/// One term x·step, low ≤ x ≤ high, of a sum that is to hit a target.
struct Term {
  Wide step;
  Wide low;
  Wide high;
};

/// Can a choice of x for each term make the sum land in [target_low, target_high]? Terms come
/// with steps > 0, largest first. In sane layouts the inner terms together reach less than one
/// outer step, so each level has at most a few candidates; `budget` cuts off the rest.
bool reachable(std::span<const Term> terms, Wide target_low, Wide target_high, int& budget) {
  if (terms.empty()) return target_low <= 0 && 0 <= target_high;
  if (--budget < 0) return true;
  Wide rest_low = 0;
  Wide rest_high = 0;
  for (const auto& term : terms.subspan(1)) {
    rest_low += term.step * term.low;
    rest_high += term.step * term.high;
  }
  const auto floor_div = [](Wide a, Wide b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
  const Term& term = terms.front();
  const Wide first = std::max<Wide>(-floor_div(-(target_low - rest_high), term.step), term.low);
  const Wide last = std::min<Wide>(floor_div(target_high - rest_low, term.step), term.high);
  for (Wide x = first; x <= last; ++x) {
    const Wide moved = x * term.step;
    if (reachable(terms.subspan(1), target_low - moved, target_high - moved, budget)) return true;
  }
  return false;
}

constexpr int kSearchBudget = 20000;

Wide magnitude(Wide x) {
  return x < 0 ? -x : x;
}

/// Whether every axis steps over all that the axes after it reach, as in any tensor that lies in
/// the order of its axes: then no two elements are in one place.
bool steps_over_inner_axes(const TensorView& view) {
  Wide inner = 0;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    if (view.shape[axis] == 1) continue;
    const Wide step = magnitude(view.strides[axis]);
    if (step <= inner) return false;
    inner += step * (view.shape[axis] - 1);
  }
  return true;
}

/// The terms of one or two views, largest step first, equal steps merged into one (which keeps the
/// search narrow for views of one tensor). Allocates nothing: this runs before every call.
class Terms {
 public:
  void add(Wide step, Wide low, Wide high) {
    if (step == 0) return;
    if (step < 0) std::tie(step, low, high) = std::tuple(-step, -high, -low);
    std::size_t at = 0;
    while (at < count_ && terms_[at].step > step) ++at;
    if (at < count_ && terms_[at].step == step) {
      terms_[at].low += low;
      terms_[at].high += high;
      return;
    }
    for (std::size_t last = count_; last > at; --last) terms_[last] = terms_[last - 1];
    terms_[at] = {step, low, high};
    ++count_;
  }

  std::span<Term> all() { return std::span(terms_).first(count_); }

 private:
  std::array<Term, 2 * TensorView::kMaxRank> terms_{};
  std::size_t count_ = 0;
};

}  // namespace

std::array<TensorView, 3> split_qkv(const TensorView& qkv) {
  return split<3>(qkv, "qkv");
}

std::array<TensorView, 2> split_kv(const TensorView& kv) {
  return split<2>(kv, "kv");
}

bool overlap(const TensorView& a, const TensorView& b) {
  if (!share_memory(a.device, b.device)) return false;
  if (!Extent(a).meets(Extent(b))) return false;  // nearly always
  // Element addresses are a + the sum of a's terms and b + that of b's. Two elements touch if their
  // distance is less than the size of the lower one.
  const auto size_a = static_cast<Wide>(size_of(a.dtype));
  const auto size_b = static_cast<Wide>(size_of(b.dtype));
  Terms terms;
  for (int axis = 0; axis < a.rank; ++axis)
    terms.add(a.strides[axis] * size_a, 0, a.shape[axis] - 1);
  for (int axis = 0; axis < b.rank; ++axis)
    terms.add(-(b.strides[axis] * size_b), 0, b.shape[axis] - 1);
  const Wide distance = static_cast<Wide>(reinterpret_cast<std::uintptr_t>(b.data)) -
                        static_cast<Wide>(reinterpret_cast<std::uintptr_t>(a.data));
  int budget = kSearchBudget;
  return reachable(terms.all(), distance - size_a + 1, distance + size_b - 1, budget);
}

bool overlaps_itself(const TensorView& view) {
  if (is_empty(view) || steps_over_inner_axes(view)) return false;
  Terms axes;
  for (int axis = 0; axis < view.rank; ++axis) {
    const Wide reach = view.shape[axis] - 1;
    if (reach > 0 && view.strides[axis] == 0) return true;
    for (int other = 0; other < axis; ++other) {  // equal strides collide at once
      if (reach > 0 && view.shape[other] > 1 &&
          magnitude(view.strides[axis]) == magnitude(view.strides[other])) {
        return true;
      }
    }
    if (reach > 0) axes.add(view.strides[axis], -reach, reach);
  }
  // Two indices collide if a non-zero difference of indices sums to zero: force each axis in turn
  // to be the first that differs (by symmetry, upwards).
  int budget = kSearchBudget;
  for (auto terms = axes.all(); !terms.empty(); terms = terms.subspan(1)) {
    const Wide low = std::exchange(terms.front().low, 1);
    const bool collides = reachable(terms, 0, 0, budget);
    terms.front().low = low;
    if (collides) return true;
  }
  return false;
}

}  // namespace strobe
