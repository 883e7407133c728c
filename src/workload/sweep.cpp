#include "workload/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "measure/flops.h"
#include "strobe/error.h"

namespace strobe::lab {
namespace {

constexpr std::size_t kMostPoints = 100'000;

/// The axes of a grid from the slowest to the fastest.
std::vector<const Axis*> in_order(const Grid& grid) {
  std::vector<const Axis*> ordered;
  const auto all = settings();
  for (auto setting = all.rbegin(); setting != all.rend(); ++setting) {
    for (const Axis& axis : grid.axes) {
      if (axis.setting == setting->name) ordered.push_back(&axis);
    }
  }
  return ordered;
}

void require_few(const Grid& grid) {
  double count = static_cast<double>(grid.passes.size() * grid.implementations.size());
  std::vector<std::string> options;
  for (const Axis& axis : grid.axes) {
    count *= static_cast<double>(axis.values.size());
    if (axis.values.size() > 1) options.push_back(fmt::format("--{}", axis.setting));
  }
  if (count <= kMostPoints) return;
  throw InvalidArgument(fmt::format("{}", fmt::join(options, ", ")),
                        fmt::format("make a sweep of {:.0f} points, allowed are {}; give fewer "
                                    "values",
                                    count, kMostPoints));
}

std::string point_text(const SettingValues& values) {
  std::vector<std::string> parts;
  for (const auto& [setting, value] : values) parts.push_back(fmt::format("{} {}", setting, value));
  return parts.empty() ? "the defaults" : fmt::format("{}", fmt::join(parts, ", "));
}

Problem problem_at(const SettingValues& values) {
  try {
    return make_problem(resolve(values));
  } catch (const InvalidArgument& error) {
    const std::string why = std::string(error.what()).substr(error.field().size() + 1);
    throw InvalidArgument(error.field(), fmt::format("{} (at {})", why, point_text(values)));
  }
}

/// The problems of the axes from `first` on, with the values of those before it chosen.
void expand(std::span<const Axis* const> axes, SettingValues& values,
            std::vector<Problem>& problems) {
  if (axes.empty()) {
    problems.push_back(problem_at(values));
    return;
  }
  for (const std::string& value : axes.front()->values) {
    values[axes.front()->setting] = value;
    expand(axes.subspan(1), values, problems);
  }
}

}  // namespace

std::string Point::name() const {
  return fmt::format("{} on {}", implementation, problem.text());
}

void set_axis(Grid& grid, const Axis& axis) {
  for (Axis& present : grid.axes) {
    if (present.setting != axis.setting) continue;
    present = axis;
    return;
  }
  grid.axes.push_back(axis);
}

std::vector<Point> points_of(std::span<const Grid> grids) {
  std::vector<Point> points;
  std::set<std::pair<std::string, std::string>> known;
  for (const Grid& grid : grids) {
    require_few(grid);
    std::vector<Problem> problems;
    SettingValues values;
    expand(in_order(grid), values, problems);
    for (Problem& problem : problems) {
      for (const Pass pass : grid.passes) {
        problem.pass = pass;
        for (const std::string& implementation : grid.implementations) {
          if (!known.emplace(implementation, problem.text()).second) continue;
          points.push_back({problem, implementation});
        }
      }
    }
  }
  return points;
}

Grid shortened(Grid grid, std::int64_t by) {
  const auto has = [&grid](std::string_view setting) {
    return std::any_of(grid.axes.begin(), grid.axes.end(),
                       [&](const Axis& axis) { return axis.setting == setting; });
  };
  if (by != 1 && (!has("seqlen") || has("lengths"))) {
    throw InvalidArgument("--shrink",
                          fmt::format("is {}, but there is no --seqlen for it to divide", by));
  }
  for (Axis& axis : grid.axes) axis = shortened(std::move(axis), by);
  return grid;
}

std::int64_t operand_bytes(const Point& point) {
  const Problem& p = point.problem;
  // The sum of tensors that could be addressed each may be past 64 bits; no machine has a petabyte.
  const double rows = static_cast<double>(p.total_q()) * static_cast<double>(p.heads) +
                      static_cast<double>(p.total_k()) * static_cast<double>(p.kv_heads());
  if (rows * static_cast<double>(p.dim + p.value_dim()) > 1e15) {
    return std::numeric_limits<std::int64_t>::max();
  }
  const Footprint bytes = footprint(p);
  return bytes.inputs + bytes.outputs;
}

void require_memory(std::span<const Point> points, std::int64_t available) {
  const auto largest = std::max_element(
      points.begin(), points.end(),
      [](const Point& a, const Point& b) { return operand_bytes(a) < operand_bytes(b); });
  if (largest == points.end() || available == 0 || operand_bytes(*largest) <= available) return;
  throw InvalidArgument(
      "the sweep",
      fmt::format("does not fit in memory: the operands of {} need {:.1f} GB and {:.1f} "
                  "GB are free; make --batch, --seqlen or --nheads smaller",
                  largest->problem.text(), static_cast<double>(operand_bytes(*largest)) / 1e9,
                  static_cast<double>(available) / 1e9));
}

}  // namespace strobe::lab
