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

namespace {

/// The largest first, and of equal ones neighbours beside each other.
bool goes_before(const WorkItem& a, const WorkItem& b) {
  if (a.cost != b.cost) return a.cost > b.cost;
  if (a.sequence != b.sequence) return a.sequence < b.sequence;
  if (a.key_head != b.key_head) return a.key_head < b.key_head;
  if (a.row_begin != b.row_begin) return a.row_begin < b.row_begin;
  return a.key_begin < b.key_begin;
}

}  // namespace

/// Sorted items go round the shares, one to each. Where some are equally large it does not matter
/// which of them a share is given: the first few go to one, the next few to the next.
void deal(std::span<WorkItem> items, std::span<WorkItem> room, int threads) {
  const std::span<WorkItem> sorted = room.first(items.size());
  std::copy(items.begin(), items.end(), sorted.begin());
  std::sort(sorted.begin(), sorted.end(), goes_before);
  const Shares shares(static_cast<std::int64_t>(items.size()), threads);
  const auto count = static_cast<std::size_t>(shares.count());
  auto next = sorted.begin();
  for (std::size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    while (end < items.size() && sorted[end].cost == sorted[begin].cost) ++end;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t share = (begin + i) % count;
      const auto first = static_cast<std::size_t>(shares.begin(static_cast<int>(share)));
      for (std::size_t round = begin + i; round < end; round += count)
        items[first + round / count] = *next++;
    }
  }
}

}  // namespace strobe::cpu
