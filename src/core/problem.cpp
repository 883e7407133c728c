#include "strobe/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/text.h"
#include "core/wide.h"
#include "strobe/error.h"

namespace strobe {
namespace {

constexpr std::int64_t kMaxDim = 512;
constexpr std::int64_t kMaxLength = 0x7FFFFFFF;  // positions are 32-bit in dropout and cu_seqlens

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

void require_between(const char* field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) {
    throw InvalidArgument(field, concat("is ", value, ", allowed is ", low, " to ", high));
  }
}

/// Of a number that kernels compute with in fp32, as its inverse and as a small multiple: whether
/// all of these are normal numbers there.
bool has_room_in_fp32(double value) {
  const double size = std::abs(value);
  return size >= 1e-37 && size <= 1e37;
}

void require_lengths(const char* field, const std::vector<std::int64_t>& lengths,
                     std::int64_t batch, const char* bound_name, std::int64_t bound) {
  if (static_cast<std::int64_t>(lengths.size()) != batch) {
    throw InvalidArgument(field, concat("has ", lengths.size(), " entries, one for each of the ",
                                        batch, " sequences of the batch is needed"));
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > bound) {
      throw InvalidArgument(field, concat("has ", lengths[i], " at position ", i,
                                          ", allowed is 0 to ", bound, " (", bound_name, ")"));
    }
  }
}

/// Bytes of a tensor of these sizes must fit in 63 bits, or index arithmetic would wrap.
void require_addressable(const char* tensor, std::initializer_list<std::int64_t> sizes) {
  Wide bytes = 8;
  for (const auto size : sizes) {
    bytes *= std::max<std::int64_t>(size, 1);
    if (bytes > std::numeric_limits<std::int64_t>::max()) {
      throw InvalidArgument(tensor,
                            concat("would have ", joined(sizes, " x "),
                                   " elements, more than 64-bit addresses reach; make batch, "
                                   "seqlen, heads or dim smaller"));
    }
  }
}

}  // namespace

std::string_view name_of(Pass pass) {
  return pass == Pass::forward ? "forward" : "backward";
}

std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::separate:
      return "separate";
    case Layout::kvpacked:
      return "kvpacked";
    case Layout::qkvpacked:
      return "qkvpacked";
  }
  return "unknown";
}

std::string name_of(const Bias& bias) {
  return concat(bias.per_batch ? "b" : "", bias.per_head ? "h" : "", bias.per_query ? "q" : "",
                "k");
}

double Problem::softmax_scale() const {
  return scale.value_or(1.0 / std::sqrt(static_cast<double>(dim)));
}

std::int64_t Problem::total_q() const {
  return varlen() ? sum(lengths_q) : batch * seqlen_q;
}

std::int64_t Problem::total_k() const {
  return varlen() ? sum(lengths_k) : batch * keys();
}

std::int64_t Problem::length_q(std::int64_t sequence) const {
  return varlen() ? lengths_q.at(static_cast<std::size_t>(sequence)) : seqlen_q;
}

std::int64_t Problem::length_k(std::int64_t sequence) const {
  return varlen() ? lengths_k.at(static_cast<std::size_t>(sequence)) : keys();
}

Window Problem::effective_window() const {
  Window result = window;
  if (causal) result.right = 0;
  return result;
}

KeyRange Problem::visible(std::int64_t i, std::int64_t len_q, std::int64_t len_k) const {
  const Window limits = effective_window();
  const std::int64_t position = i + len_k - len_q;
  KeyRange range{0, len_k};
  if (limits.left >= 0) range.begin = std::max<std::int64_t>(0, position - limits.left);
  if (limits.right >= 0)
    range.end = std::clamp<std::int64_t>(position + limits.right + 1, 0, len_k);
  range.begin = std::min(range.begin, range.end);
  return range;
}

void Problem::validate() const {
  require_between("batch", batch, 0, kMaxLength);
  require_between("seqlen_q", seqlen_q, 0, kMaxLength);
  require_between("seqlen_k", keys(), 0, kMaxLength);
  require_between("heads", heads, 1, kMaxLength);
  require_between("heads_k", kv_heads(), 1, heads);
  if (heads % kv_heads() != 0) {
    throw InvalidArgument("heads_k",
                          concat("is ", kv_heads(), ", which does not divide heads = ", heads));
  }
  require_between("dim", dim, 1, kMaxDim);
  require_between("dim_v", value_dim(), 1, kMaxDim);
  if (dtype == DType::uint8 || dtype == DType::int32 || static_cast<int>(dtype) > 6) {
    throw InvalidArgument("dtype", "must be one of fp32, fp16, bf16, fp8e4m3, int8");
  }
  if (static_cast<int>(pass) > 1) throw InvalidArgument("pass", "is neither forward nor backward");
  if (static_cast<int>(layout) > 2) {
    throw InvalidArgument("layout", "is none of separate, kvpacked, qkvpacked");
  }
  if (scale && *scale != 0 && !has_room_in_fp32(*scale)) {
    throw InvalidArgument("scale",
                          concat("is ", *scale, ", allowed is 0 or 1e-37 to 1e37 in size"));
  }
  require_between("window.left", window.left, -1, std::numeric_limits<std::int32_t>::max());
  require_between("window.right", window.right, -1, std::numeric_limits<std::int32_t>::max());
  if (softcap != 0 && !(softcap > 0 && has_room_in_fp32(softcap))) {
    throw InvalidArgument("softcap",
                          concat("is ", softcap, ", allowed is 0 (off) or 1e-37 to 1e37"));
  }
  if (!(dropout >= 0 && dropout < 1)) {
    throw InvalidArgument("dropout",
                          concat("is ", dropout, ", allowed is 0 up to but not including 1"));
  }
  if (varlen()) {
    require_lengths("lengths_q", lengths_q, batch, "seqlen_q", seqlen_q);
    require_lengths("lengths_k", lengths_k, batch, "seqlen_k", keys());
    require_between("lengths_q", total_q(), 0, kMaxLength);  // cu_seqlens are 32-bit
    require_between("lengths_k", total_k(), 0, kMaxLength);
  }
  if (layout != Layout::separate && value_dim() != dim) {
    throw InvalidArgument("layout", "packs k and v together, so dim_v must equal dim");
  }
  if (layout == Layout::qkvpacked &&
      (kv_heads() != heads || keys() != seqlen_q || lengths_q != lengths_k)) {
    throw InvalidArgument("layout", "is qkvpacked, so k must have the heads and the lengths of q");
  }
  require_addressable("q", {batch, seqlen_q, heads, std::max(dim, value_dim()), 3});
  require_addressable("k", {batch, keys(), kv_heads(), std::max(dim, value_dim()), 3});
  if (bias) {
    require_addressable("bias", {bias->per_batch ? batch : 1, bias->per_head ? heads : 1,
                                 bias->per_query ? seqlen_q : 1, keys()});
  }
}

}  // namespace strobe
