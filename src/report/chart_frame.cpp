#include "report/chart_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace strobe::lab {
namespace {

/// 1, 2 or 5 times a power of ten, so that there are about six of them.
double round_step(double range) {
  const double rough = range / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (rough <= step * power) return step * power;
  }
  return 10 * power;
}

constexpr std::string_view kFrameStyle =
    "text{font:12px sans-serif;fill:#333}.title{font-size:16px;font-weight:bold}"
    ".tick,.axis{text-anchor:middle}.grid{stroke:#e4e4e4}";

}  // namespace

ChartAxis ChartAxis::logarithmic(double least, double most) {
  const double low = std::floor(std::log10(least)), high = std::ceil(std::log10(most));
  return {true, low, std::max(high, low + 1), 1};
}

ChartAxis ChartAxis::linear(double least, double most) {
  const double extent = most > least ? most - least : std::max(std::abs(most), 1.0);
  const double step = round_step(extent);
  const double low = std::floor(least / step) * step;
  return {false, low, std::max(std::ceil(most / step) * step, low + step), step};
}

double ChartAxis::place(double value) const {
  return ((logarithmic_ ? std::log10(value) : value) - low_) / (high_ - low_);
}

double ChartAxis::low() const {
  return logarithmic_ ? std::pow(10, low_) : low_;
}

double ChartAxis::high() const {
  return logarithmic_ ? std::pow(10, high_) : high_;
}

std::vector<double> ChartAxis::ticks() const {
  std::vector<double> all;
  const auto count = std::lround((high_ - low_) / step_);
  for (long i = 0; i <= count; ++i) {
    const double place = low_ + static_cast<double>(i) * step_;
    all.push_back(logarithmic_ ? std::pow(10, place) : place);
  }
  return all;
}

void ChartFrame::line(double x1, double y1, double x2, double y2, std::string_view style) {
  svg_ +=
      fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                  style, x1, y1, x2, y2);
}

void ChartFrame::text(double x, double y, std::string_view style, const std::string& words) {
  svg_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", style, x, y,
                      escape_html(words));
}

void ChartFrame::dot(double x, double y, std::string_view style) {
  svg_ += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n", style, x, y);
}

void ChartFrame::rectangle(double x, double y, double width, double height,
                           std::string_view style) {
  svg_ += fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", style,
      x, y, width, height);
}

void ChartFrame::axes(const std::string& x_title, const std::string& y_title, double y_unit) {
  for (const double value : x_.ticks()) {
    line(at_x(value), kTop, at_x(value), kBottom, "grid");
    text(at_x(value), kBottom + 18, "tick", fmt::format("{:g}", value));
  }
  for (const double value : y_.ticks()) {
    line(kLeft, at_y(value), kRight, at_y(value), "grid");
    text(kLeft - 30, at_y(value) + 4, "tick", fmt::format("{:g}", value / y_unit));
  }
  text((kLeft + kRight) / 2, kHeight - 16, "axis", x_title);
  svg_ +=
      fmt::format("<text class=\"axis\" transform=\"translate(20 {:.1f}) rotate(-90)\">{}</text>\n",
                  (kTop + kBottom) / 2, escape_html(y_title));
}

std::string ChartFrame::document(const std::string& title, std::string_view style) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\">\n<style>{2}{3}</style>\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n<text class=\"title\" x=\"{4:.0f}\" y=\"28\">{5}</text>\n{6}</svg>\n",
      kWidth, kHeight, kFrameStyle, style, kLeft, escape_html(title), svg_);
}

}  // namespace strobe::lab
