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

/// Blocks [begin, end) of keys that a block of queries sees, or of queries that see a block of
/// keys. In [full_begin, full_end) every query sees every key.
struct Blocks {
  int begin;
  int end;
  int full_begin;
  int full_end;

  STROBE_DEVICE bool is_full(int block) const { return block >= full_begin && block < full_end; }
};

/// A window around the query's position, which counts from the end: the last query stands at the
/// last key. Causal is a right limit of 0. The ends of the sequence are part of the mask, so
/// padding needs no test of its own. Positions and limits are counted by `Count`: limits are at
/// most 2³², or 2³⁰ for sequences of less than 2²⁹.
template <bool left_limited, bool right_limited, class Count = Wide>
struct WindowMask {
  Count left;
  Count right;
  int length_q;
  int length_k;

  STROBE_DEVICE KeyRange visible(int query) const {
    const Count position = static_cast<Count>(query) + length_k - length_q;
    Count begin = 0;
    Count end = length_k;
    if (left_limited) begin = larger<Count>(0, position - left);
    if (right_limited) end = larger<Count>(0, smaller<Count>(length_k, position + right + 1));
    return {static_cast<int>(smaller(begin, end)), static_cast<int>(end)};
  }

  /// The first query that sees a key, if there is one.
  STROBE_DEVICE Count seen_from(Count key) const {
    if (!right_limited) return 0;
    return larger<Count>(0, smaller<Count>(length_q, key - right - length_k + length_q));
  }

  /// Behind the last one that does.
  STROBE_DEVICE Count seen_until(Count key) const {
    if (!left_limited) return length_q;
    return larger<Count>(0, smaller<Count>(length_q, key + left + 1 - length_k + length_q));
  }

  /// For queries [query_begin, query_end), at least one. Both ends of what is seen move forward
  /// with the query, so the first and the last query decide.
  template <int block_keys>
  STROBE_DEVICE Blocks blocks(int query_begin, int query_end) const {
    const KeyRange first = visible(query_begin);
    const KeyRange last = visible(query_end - 1);
    const auto above = [](int key) {
      return static_cast<int>(ceil_div<Word>(static_cast<Word>(key), block_keys));
    };
    return {first.begin / block_keys, above(last.end), above(last.begin), first.end / block_keys};
  }

  /// Blocks of queries for the block of keys from `key` on.
  template <int block_queries, int block_keys>
  STROBE_DEVICE Blocks query_blocks(int key) const {
    const Count last_key = static_cast<Count>(key) + block_keys - 1;
    const auto above = [](Count query) {
      return static_cast<int>(ceil_div<Count>(query, block_queries));
    };
    const Count begin = seen_from(key);
    const Count end = seen_until(smaller<Count>(last_key, length_k - 1));
    const bool whole = last_key < length_k;
    return {static_cast<int>(begin / block_queries), above(end),
            whole ? above(seen_from(last_key)) : 0,
            whole ? static_cast<int>(seen_until(key) / block_queries) : 0};
  }
};

}  // namespace strobe::cuda
