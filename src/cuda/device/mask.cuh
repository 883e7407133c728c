#pragma once
// Which keys a query sees, and what follows from it for blocks of queries and keys.

#include "device/basics.cuh"

namespace strobe::cuda {

/// Keys [begin, end).
struct KeyRange {
  int begin;
  int end;

  /// Also for keys past 2³¹ of the last block's padding.
  STROBE_DEVICE bool contains(Word key) const {
    return key - static_cast<Word>(begin) < static_cast<Word>(end - begin);
  }
};

/// Blocks of keys [begin, end) that a block of queries needs, of which every query sees all keys
/// of [full_begin, full_end).
struct KeyBlocks {
  int begin;
  int end;
  int full_begin;
  int full_end;

  STROBE_DEVICE bool is_full(int block) const { return block >= full_begin && block < full_end; }
};

/// A window around the query's position, which counts from the end: the last query stands at the
/// last key. Causal is a right limit of 0. The ends of the sequence are part of the mask, so
/// padding needs no test of its own. Limits are at most 2³².
template <bool left_limited, bool right_limited>
struct WindowMask {
  Wide left;
  Wide right;
  int length_q;
  int length_k;

  STROBE_DEVICE KeyRange visible(int query) const {
    const Wide position = static_cast<Wide>(query) + length_k - length_q;
    Wide begin = 0;
    Wide end = length_k;
    if (left_limited) begin = larger<Wide>(0, position - left);
    if (right_limited) end = larger<Wide>(0, smaller<Wide>(length_k, position + right + 1));
    return {static_cast<int>(smaller(begin, end)), static_cast<int>(end)};
  }

  /// For queries [query_begin, query_end), at least one. Both ends of what is seen move forward
  /// with the query, so the first and the last query decide.
  template <int block_keys>
  STROBE_DEVICE KeyBlocks blocks(int query_begin, int query_end) const {
    const KeyRange first = visible(query_begin);
    const KeyRange last = visible(query_end - 1);
    const auto above = [](int key) {
      return static_cast<int>(ceil_div<Word>(static_cast<Word>(key), block_keys));
    };
    return {first.begin / block_keys, above(last.end), above(last.begin), first.end / block_keys};
  }
};

}  // namespace strobe::cuda
