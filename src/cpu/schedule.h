#pragma once

#include <algorithm>
#include <cstdint>

#include "core/threads.h"

namespace strobe::cpu {

/// Calls body(sequence, head, begin, end, thread) for every block of every sequence and head.
/// Blocks are numbered by the longest length allowed, so that an item's place needs no table;
/// those past a shorter sequence's end fall away. The last blocks, which see the most under a
/// causal mask, go first.
template <class Length, class Body>
void for_each_block(std::int64_t batch, std::int64_t heads, std::int64_t longest,
                    std::int64_t block, int threads, Length&& length, Body&& body) {
  const std::int64_t blocks = (longest + block - 1) / block;
  parallel_for(blocks * batch * heads, threads, [&](std::int64_t item, int thread) {
    const std::int64_t sequence = item % (batch * heads) / heads;
    const std::int64_t begin = (blocks - 1 - item / (batch * heads)) * block;
    const std::int64_t end = std::min<std::int64_t>(begin + block, length(sequence));
    if (begin < end) body(sequence, item % heads, begin, end, thread);
  });
}

}  // namespace strobe::cpu
