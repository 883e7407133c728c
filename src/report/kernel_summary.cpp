#include "report/kernel_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/device_text.h"
#include "report/table.h"

namespace strobe::lab {
namespace {

double milliseconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

std::int64_t duration_ns(const RecordedSpan& span) {
  return span.end_ns - span.begin_ns;
}

/// For each span its duration without the spans directly within it.
std::vector<std::int64_t> own_ns(const std::vector<RecordedSpan>& spans) {
  std::vector<std::int64_t> own;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    own.push_back(duration_ns(spans[i]));
    while (!open.empty() && spans[open.back()].end_ns <= spans[i].begin_ns) open.pop_back();
    if (!open.empty()) own[open.back()] -= own[i];
    open.push_back(i);
  }
  return own;
}

/// Sums of what has one name.
class RowsByName {
 public:
  void add(std::string_view category, std::string_view name, std::int64_t ns, std::int64_t own_ns) {
    KernelRow& row = rows_[{category, name}];
    row.category = category;
    row.name = name;
    ++row.calls;
    row.total_ms += milliseconds(ns);
    row.self_ms += milliseconds(own_ns);
  }

  std::vector<KernelRow> in_order() const {
    std::vector<KernelRow> rows;
    for (const auto& [name, row] : rows_) rows.push_back(row);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const KernelRow& a, const KernelRow& b) { return a.self_ms > b.self_ms; });
    return rows;
  }

 private:
  std::map<std::pair<std::string_view, std::string_view>, KernelRow> rows_{};
};

}  // namespace

std::vector<KernelRow> kernel_rows(const Recording& recording) {
  RowsByName rows;
  for (const RecordedThread& thread : recording) {
    const std::vector<std::int64_t> own = own_ns(thread.spans);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const RecordedSpan& span = thread.spans[i];
      rows.add(span.category, span.name, duration_ns(span), own[i]);
    }
  }
  return rows.in_order();
}

std::vector<KernelRow> kernel_rows(const DeviceActivity& activity) {
  RowsByName rows;
  for (const DeviceWork& work : activity.work) {
    const std::int64_t ns = work.end_ns - work.begin_ns;
    rows.add(category_of(work), work.name, ns, ns);
  }
  return rows.in_order();
}

std::string kernel_summary(const std::vector<KernelRow>& rows) {
  double all = 0;
  for (const KernelRow& row : rows) all += row.self_ms;
  Table table({{"Name"},
               {"Category"},
               {"Calls", Align::right},
               {"Total (ms)", Align::right},
               {"Mean (ms)", Align::right},
               {"Self (ms)", Align::right},
               {"%", Align::right}});
  for (const KernelRow& row : rows) {
    table.add_row({std::string(row.name), std::string(row.category), std::to_string(row.calls),
                   fmt::format("{:.3f}", row.total_ms), fmt::format("{:.4f}", row.mean_ms()),
                   fmt::format("{:.3f}", row.self_ms),
                   fmt::format("{:.1f}", all > 0 ? 100 * row.self_ms / all : 0)});
  }
  return table.render();
}

double busy_part(const Recording& recording, int threads) {
  double working = 0, available = 0;
  for (const KernelRow& row : kernel_rows(recording)) {
    if (row.category == "cpu") working += row.total_ms;
    if (row.category == "library" && row.name == "execute") available += threads * row.total_ms;
  }
  return available > 0 ? std::min(working / available, 1.0) : 0;
}

}  // namespace strobe::lab
