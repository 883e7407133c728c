#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/threads.h"
#include "cpu/head_task.h"

namespace strobe::cpu {

/// Some rows (or keys) of one key head of one sequence.
struct WorkItem {
  std::int32_t sequence = 0;
  std::int32_t key_head = 0;
  std::int64_t row_begin = 0, row_end = 0;  // of the queries, through the heads that share the keys
  std::int64_t key_begin = 0, key_end = 0;
  double cost = 0;  // pairs of query and key that the mask shows, about
};

/// Keys [begin, end) that the mask shows query `query`, of those in [key_begin, key_end).
std::int64_t visible_count(const HeadTask& task, std::int64_t query, std::int64_t key_begin,
                           std::int64_t key_end);

/// The work of the rows [row_begin, row_end) with those keys, sampled.
double work(const HeadTask& task, const WorkItem& item);

/// Puts the items in the order in which parallel_for is to deal them to so many threads: in every
/// share the largest first, so that no thread begins a long item when the others are done, and as
/// large ones in every share. Of items that are equally large each thread has neighbours: cores
/// read ahead, and should not do so where others write. `room` is for as many items.
void deal(std::span<WorkItem> items, std::span<WorkItem> room, int threads);

/// Calls body(sequence, head, begin, end, thread) for every block of every sequence and head.
/// Blocks are numbered by the longest length allowed, so that an item's place needs no table;
/// those past a shorter sequence's end fall away. `name` is that of the spans.
template <class Length, class Body>
void for_each_block(std::string_view name, std::int64_t batch, std::int64_t heads,
                    std::int64_t longest, std::int64_t block, int threads, Length&& length,
                    Body&& body) {
  const std::int64_t blocks = (longest + block - 1) / block;
  parallel_for(name, blocks * batch * heads, threads, [&](std::int64_t item, int thread) {
    const std::int64_t sequence = item % (batch * heads) / heads;
    const std::int64_t begin = item / (batch * heads) * block;
    const std::int64_t end = std::min<std::int64_t>(begin + block, length(sequence));
    if (begin < end) body(sequence, item % heads, begin, end, thread);
  });
}

}  // namespace strobe::cpu
