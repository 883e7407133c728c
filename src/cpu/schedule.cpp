#include "cpu/schedule.h"

namespace strobe::cpu {

std::int64_t visible_count(const HeadTask& task, std::int64_t query, std::int64_t key_begin,
                           std::int64_t key_end) {
  const std::int64_t position = query + task.len_k - task.len_q;
  std::int64_t begin = key_begin;
  std::int64_t end = std::min(key_end, task.len_k);
  if (task.window_left >= 0) begin = std::max(begin, position - task.window_left);
  if (task.window_right >= 0) end = std::min(end, position + task.window_right + 1);
  return std::max<std::int64_t>(end - begin, 0);
}

double work(const HeadTask& task, const WorkItem& item) {
  constexpr std::int64_t kSamples = 8;
  const std::int64_t rows = item.row_end - item.row_begin;
  if (rows <= 0) return 0;
  double seen = 0;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const std::int64_t row = item.row_begin + (2 * i + 1) * rows / (2 * kSamples);
    seen +=
        static_cast<double>(visible_count(task, row % task.len_q, item.key_begin, item.key_end));
  }
  return seen / kSamples * static_cast<double>(rows);
}

void sort_by_cost(std::span<WorkItem> items) {
  std::sort(items.begin(), items.end(), [](const WorkItem& a, const WorkItem& b) {
    if (a.cost != b.cost) return a.cost > b.cost;
    if (a.sequence != b.sequence) return a.sequence < b.sequence;
    if (a.key_head != b.key_head) return a.key_head < b.key_head;
    if (a.row_begin != b.row_begin) return a.row_begin < b.row_begin;
    return a.key_begin < b.key_begin;
  });
}

}  // namespace strobe::cpu
