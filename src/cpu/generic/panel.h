#pragma once
// Which queries lie in the lanes of a block of scores, and what the mask shows them.

#include "cpu/generic/pack.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Queries side by side. Rows are counted through the heads that share a key head, one head's
/// queries after the other's, so that a few queries of many heads fill the lanes as well.
template <int lanes>
struct Panel {
  Panel(const HeadTask* heads, std::int64_t row, std::int64_t rows) : count(rows) {
    const std::int64_t length = heads->len_q;
    const HeadTask* task = heads + row / length;
    std::int64_t position = row % length;
    if (position + rows <= length) {  // all of one head; lanes past the end repeat the last row
      first = position;
      last = position + rows - 1;
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        head[lane] = task;
        query[lane] = smaller(position + lane, last);
      }
      return;
    }
    first = length;
    last = 0;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      head[lane] = task;
      query[lane] = position;
      first = smaller(first, position);
      last = larger(last, position);
      if (lane + 1 >= count) continue;  // lanes past the end repeat the last row
      if (++position == length) {
        position = 0;
        ++task;
      }
    }
  }

  /// Its rows then lie one after the other.
  bool of_one_head() const { return head[0] == head[lanes - 1]; }

  /// Where a lane's row of a tensor begins.
  void* row_of(Rows HeadTask::*tensor, std::int64_t lane) const {
    return RowsFrom(head[lane]->*tensor, head[lane]->dtype, query[lane])(0);
  }

  std::int64_t count;
  std::int64_t first, last;  // of the queries
  const HeadTask* head[lanes];
  std::int64_t query[lanes];
};

/// Keys or queries [begin, end).
struct Span {
  std::int64_t begin;
  std::int64_t end;
};

/// Keys that queries [first, last] may see at all: the union over its rows.
inline Span visible_keys(const HeadTask& task, std::int64_t first, std::int64_t last) {
  const std::int64_t shift = task.len_k - task.len_q;
  const std::int64_t begin = task.window_left < 0 ? 0 : larger(0, first + shift - task.window_left);
  const std::int64_t end = task.window_right < 0
                               ? task.len_k
                               : smaller(task.len_k, last + shift + task.window_right + 1);
  return {begin, larger(begin, end)};
}

/// Queries that may see any of the keys [first, last].
inline Span seeing_queries(const HeadTask& task, std::int64_t first, std::int64_t last) {
  const std::int64_t shift = task.len_k - task.len_q;
  const std::int64_t begin =
      task.window_right < 0 ? 0 : larger(0, first - shift - task.window_right);
  const std::int64_t end =
      task.window_left < 0 ? task.len_q : smaller(task.len_q, last - shift + task.window_left + 1);
  return {begin, larger(begin, end)};
}

enum class Coverage { none, some, all };

/// How much of the keys [key, key + keys) the mask shows a panel's queries.
inline Coverage coverage(const HeadTask& task, std::int64_t first_query, std::int64_t last_query,
                         std::int64_t key, std::int64_t keys) {
  const std::int64_t first = first_query + task.len_k - task.len_q;
  const std::int64_t last = last_query + task.len_k - task.len_q;
  const std::int64_t last_key = key + keys - 1;
  const bool left = task.window_left >= 0;
  const bool right = task.window_right >= 0;
  if ((right && key > last + task.window_right) || (left && last_key < first - task.window_left))
    return Coverage::none;
  const bool all_right = !right || last_key <= first + task.window_right;
  const bool all_left = !left || key >= last - task.window_left;
  return all_right && all_left ? Coverage::all : Coverage::some;
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
