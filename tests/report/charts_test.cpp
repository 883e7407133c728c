#include "report/charts.h"

#include <gtest/gtest.h>

#include <limits>

#include "report/chart_frame.h"

namespace strobe::lab {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST(ChartAxis, HasRoundStepsAroundWhatItHolds) {
  const ChartAxis linear = ChartAxis::linear(0, 47);
  EXPECT_EQ(linear.low(), 0);
  EXPECT_EQ(linear.high(), 50);
  EXPECT_EQ(linear.ticks(), (std::vector<double>{0, 10, 20, 30, 40, 50}));
  EXPECT_DOUBLE_EQ(linear.place(25), 0.5);
  const ChartAxis logarithmic = ChartAxis::logarithmic(3, 450);
  EXPECT_EQ(logarithmic.low(), 1);
  EXPECT_EQ(logarithmic.high(), 1000);
  EXPECT_EQ(logarithmic.ticks().size(), 4u);
  EXPECT_LT(ChartAxis::logarithmic(10, 10).low(), ChartAxis::logarithmic(10, 10).high());
  EXPECT_LT(ChartAxis::linear(5, 5).low(), ChartAxis::linear(5, 5).high());
}

TEST(LineChartPicture, LeavesOutWhatHasNoPlace) {
  const double infinity = std::numeric_limits<double>::infinity();
  const LineChart chart{
      .title = "a < b",
      .x_title = "length",
      .y_title = "error",
      .lines = {{.label = "seen", .points = {{1, 2}, {10, 0}, {100, 4}, {1000, infinity}}},
                {.label = "predicted", .points = {{1, 1}, {100, 3}}, .dashed = true}}};
  const std::string svg = svg_of(chart);
  for (const char* part : {"<svg ", "a &lt; b", "length", "error", "seen", "predicted", "dashed"})
    EXPECT_NE(svg.find(part), std::string::npos) << part << "\n" << svg;
  EXPECT_EQ(count_of(svg, "<circle"), 2u) << "two of four are on a log axis, predictions have none";
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(svg_of(LineChart{}).find("</svg>"), std::string::npos) << "nothing is a picture too";
}

TEST(BarChartPicture, HasABarWithItsValueForEach) {
  const BarChart chart{
      .title = "bytes", .unit = "MB", .bars = {{"flash", 2.5, 0}, {"unfused & more", 10, 1}}};
  const std::string svg = svg_of(chart);
  for (const char* part : {"flash", "unfused &amp; more", "2.5 MB", "10 MB"})
    EXPECT_NE(svg.find(part), std::string::npos) << part << "\n" << svg;
  EXPECT_EQ(count_of(svg, "<rect class"), 2u);
  EXPECT_EQ(svg_of(BarChart{}).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace strobe::lab
