#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "strobe/dtype.h"
#include "strobe/export.h"

namespace strobe {

struct Device {
  enum class Kind : std::uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;

  bool operator==(const Device&) const = default;
};

/// "cpu", "cuda:0", ...
STROBE_API std::string to_string(Device device);

/// Somebody else's memory with a shape: owns nothing, copies nothing. Strides count elements
/// and may be anything (0 for an expanded axis) except on the last axis, where attention
/// tensors need 1. A view without data is "not given".
struct STROBE_API TensorView {
  static constexpr int kMaxRank = 5;

  void* data = nullptr;
  DType dtype = DType::fp32;
  Device device = {};
  int rank = 0;
  std::array<std::int64_t, kMaxRank> shape = {};
  std::array<std::int64_t, kMaxRank> strides = {};

  /// A dense row-major view.
  static TensorView contiguous(void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                               Device device = {});

  bool given() const { return data != nullptr; }
  std::int64_t elements() const;

  /// The view with `axis` fixed at `index`: rank one less, same memory.
  TensorView select(int axis, std::int64_t index) const;

  /// The same elements, where the stride of an axis without a second element, which says nothing
  /// and may be any number, is what a dense tensor would have there.
  TensorView with_plain_strides() const;

  /// "bf16[2, 4096, 16, 128]"
  std::string describe() const;
};

/// q, k, v of a packed tensor [batch, seqlen, 3, heads, dim] or [total, 3, heads, dim] as
/// strided views of the same memory (for [..., 2, heads, dim]: k and v).
STROBE_API std::array<TensorView, 3> split_qkv(const TensorView& qkv);
STROBE_API std::array<TensorView, 2> split_kv(const TensorView& kv);

/// True if some element of one view lies in the memory of an element of the other. Exact for
/// interleaved views such as the three parts of a packed tensor; a pathological stride pattern
/// that cannot be decided cheaply counts as overlapping.
STROBE_API bool overlap(const TensorView& a, const TensorView& b);

/// True if two different indices of the view name the same memory (an expanded axis, say).
STROBE_API bool overlaps_itself(const TensorView& view);

}  // namespace strobe
