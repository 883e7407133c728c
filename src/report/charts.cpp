#include "report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "report/chart_frame.h"
#include "report/palette.h"

namespace strobe::lab {
namespace {

std::string colour_class(std::size_t index) {
  return fmt::format("c{}", index % std::size(kPalette));
}

std::string colour_style() {
  std::string style =
      "line{stroke-width:2}.grid{stroke-width:1}.dashed{stroke-dasharray:6 4}.value{fill:#333}"
      ".bar-label{text-anchor:end}";
  for (std::size_t i = 0; i < std::size(kPalette); ++i) {
    const auto [red, green, blue] = kPalette[i];
    style +=
        fmt::format(".c{0}{{fill:rgb({1},{2},{3});stroke:rgb({1},{2},{3})}}", i, red, green, blue);
  }
  return style;
}

using ChartPoint = std::pair<double, double>;

bool has_place(const LineChart& chart, const ChartPoint& point) {
  const auto [x, y] = point;
  return std::isfinite(x) && std::isfinite(y) && (!chart.x_logarithmic || x > 0) &&
         (!chart.y_logarithmic || y > 0);
}

template <class Pick>
ChartAxis axis_of(const LineChart& chart, bool logarithmic, const Pick& pick) {
  std::vector<double> values;
  for (const LineChart::Line& line : chart.lines) {
    for (const ChartPoint& point : line.points) {
      if (has_place(chart, point)) values.push_back(pick(point));
    }
  }
  if (values.empty()) values = {1, 10};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return logarithmic ? ChartAxis::logarithmic(*least, *most)
                     : ChartAxis::linear(std::min(*least, 0.0), *most);
}

void draw_legend(ChartFrame& frame, std::size_t index, const std::string& style,
                 const std::string& label) {
  constexpr double kLegend = ChartFrame::kRight + 12;
  const double y = ChartFrame::kTop + 20 * static_cast<double>(index);
  frame.line(kLegend, y, kLegend + 24, y, style);
  frame.text(kLegend + 30, y + 4, "name", label);
}

void draw_line(ChartFrame& frame, const LineChart& chart, std::size_t index) {
  const LineChart::Line& line = chart.lines[index];
  const std::string colour = colour_class(index);
  const std::string style = line.dashed ? colour + " dashed" : colour;
  std::optional<ChartPoint> before;
  for (const ChartPoint& point : line.points) {
    if (!has_place(chart, point)) continue;
    const ChartPoint here{frame.at_x(point.first), frame.at_y(point.second)};
    if (before && line.joined)
      frame.line(before->first, before->second, here.first, here.second, style);
    if (!line.dashed) frame.dot(here.first, here.second, colour);
    before = here;
  }
  draw_legend(frame, index, style, line.label);
}

}  // namespace

std::string svg_of(const LineChart& chart) {
  ChartFrame frame(axis_of(chart, chart.x_logarithmic, [](const auto& p) { return p.first; }),
                   axis_of(chart, chart.y_logarithmic, [](const auto& p) { return p.second; }));
  frame.axes(chart.x_title, chart.y_title);
  for (std::size_t i = 0; i < chart.lines.size(); ++i) draw_line(frame, chart, i);
  return frame.document(chart.title, colour_style());
}

std::string svg_of(const BarChart& chart) {
  constexpr double kLabels = 230;  // what the names take of the width
  double most = 0;
  for (const BarChart::Bar& bar : chart.bars) most = std::max(most, bar.value);
  const auto none = ChartAxis::linear(0, 1);
  ChartFrame frame(none, none);
  const double height = (ChartFrame::kBottom - ChartFrame::kTop) /
                        static_cast<double>(std::max<std::size_t>(chart.bars.size(), 1));
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const BarChart::Bar& bar = chart.bars[i];
    const double y = ChartFrame::kTop + height * static_cast<double>(i);
    const double width = most > 0 ? bar.value / most * (ChartFrame::kWidth - kLabels - 130) : 0;
    frame.text(kLabels - 8, y + height / 2 + 4, "bar-label", bar.label);
    frame.rectangle(kLabels, y + height * 0.15, width, height * 0.7, colour_class(bar.kind));
    frame.text(kLabels + width + 8, y + height / 2 + 4, "value",
               fmt::format("{:.4g} {}", bar.value, chart.unit));
  }
  return frame.document(chart.title, colour_style());
}

}  // namespace strobe::lab
