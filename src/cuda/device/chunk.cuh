#pragma once
// 16 bytes at a time, of rows that begin anywhere.

#include "device/basics.cuh"
#include "device/ptx/global_memory.cuh"

namespace strobe::cuda {

/// The first `bytes` of the 16 at an address that is a multiple of 16, and zeros. Nothing behind
/// them is read, for it may belong to nobody.
STROBE_DEVICE uint4 load_part_of_chunk(const char* from, int bytes) {
  if (bytes >= 16) return *reinterpret_cast<const uint4*>(from);
  if (bytes <= 0) return {0, 0, 0, 0};
  const bool has_half = (bytes & 8) != 0;
  const uint2 half = has_half ? *reinterpret_cast<const uint2*>(from) : uint2{0, 0};
  Word rest = (bytes & 2) != 0 ? *reinterpret_cast<const unsigned short*>(from + (bytes & 12)) : 0;
  Word word = 0;
  if ((bytes & 4) != 0) {
    word = *reinterpret_cast<const Word*>(from + (bytes & 8));
  } else {
    word = rest;
    rest = 0;
  }
  return has_half ? uint4{half.x, half.y, word, rest} : uint4{word, rest, 0, 0};
}

/// 16 bytes of two chunks that follow each other, from byte `before` of the first on, which is
/// even.
STROBE_DEVICE uint4 chunk_across(uint4 low, uint4 high, int before) {
  Word words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 6; ++i) words[i] = (before & 8) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) words[i] = (before & 4) != 0 ? words[i + 1] : words[i];
  const auto pushed = [&](int i) {
    const unsigned long long pair = static_cast<unsigned long long>(words[i + 1]) << 32 | words[i];
    return static_cast<Word>(pair >> (before & 3) * 8);
  };
  return {pushed(0), pushed(1), pushed(2), pushed(3)};
}

/// The first `bytes` of the 16 at any address of an element of 2 or 4 bytes, and zeros: the two
/// chunks that they lie in, pushed together. What lies before them in the first is read as well;
/// memory of its own begins at a multiple of 16.
STROBE_DEVICE uint4 load_chunk_anywhere(const void* from, int bytes) {
  if (bytes <= 0) return {0, 0, 0, 0};
  const int before = static_cast<int>(reinterpret_cast<unsigned long long>(from) % 16);
  const char* const first = static_cast<const char*>(from) - before;
  const int end = before + smaller(bytes, 16);
  const uint4 low = load_part_of_chunk(first, end);
  if (before == 0) return low;
  const uint4 high = load_part_of_chunk(first + 16, end - 16);

  return chunk_across(low, high, before);
}

/// As load_chunk_anywhere, in two steps, so that a thread can have several on their way: all that
/// are started before one is finished. Of what lies around the bytes anything may be read that is
/// before `end`, where the tensor ends.
class ChunkLoad {
 public:
  STROBE_DEVICE void start(const void* from, int bytes, const void* end) {
    from_ = static_cast<const char*>(from);
    bytes_ = smaller(bytes, 16);
    const char* const first = from_ - before();
    crosses_end_ = first + (has_high() ? 32 : 16) > static_cast<const char*>(end);
    low_ = high_ = uint4{0, 0, 0, 0};
    if (bytes_ > 0 && !crosses_end_) low_ = *reinterpret_cast<const uint4*>(first);
    if (has_high() && !crosses_end_) high_ = *reinterpret_cast<const uint4*>(first + 16);
  }

  STROBE_DEVICE uint4 finish() const {
    if (crosses_end_) return load_chunk_anywhere(from_, bytes_);
    const uint4 chunk = chunk_across(low_, high_, before());
    return {chunk.x & kept(0), chunk.y & kept(4), chunk.z & kept(8), chunk.w & kept(12)};
  }

 private:
  STROBE_DEVICE int before() const {
    return static_cast<int>(reinterpret_cast<unsigned long long>(from_) % 16);
  }
  STROBE_DEVICE bool has_high() const { return before() + bytes_ > 16; }

  /// Of a word from this byte on.
  STROBE_DEVICE Word kept(int byte) const {
    return bytes_ >= byte + 4 ? ~0U : bytes_ > byte ? 0xFFFFU : 0U;
  }

  const char* from_;
  int bytes_;
  bool crosses_end_;
  uint4 low_;
  uint4 high_;
};

/// The first `bytes` of 16 to any address of an element, and nothing behind them.
STROBE_DEVICE void store_chunk_anywhere(void* to, uint4 chunk, int bytes) {
  const auto address = reinterpret_cast<unsigned long long>(to);
  if (address % 16 == 0 && bytes >= 16) {
    ptx::store_global_chunk(to, chunk);
    return;
  }
  const Word words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int left = bytes - 4 * i;
    if (address % 4 == 0 && left >= 4) {
      static_cast<Word*>(to)[i] = words[i];
    } else {
      auto* const halves = static_cast<unsigned short*>(to) + 2 * i;
      if (left >= 2) halves[0] = static_cast<unsigned short>(words[i]);
      if (left >= 4) halves[1] = static_cast<unsigned short>(words[i] >> 16);
    }
  }
}

}  // namespace strobe::cuda
