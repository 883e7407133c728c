#include "report/roofline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace strobe::lab {
namespace {

constexpr double kPictureWidth = 820, kPictureHeight = 520;
constexpr double kLeftMargin = 80, kRightMargin = 210, kTopMargin = 56, kBottomMargin = 60;

/// Whole powers of ten that hold what is to be seen.
struct LogAxis {
  double low = 0, high = 1;  ///< exponents

  static LogAxis around(double least, double most) {
    LogAxis axis{std::floor(std::log10(least)), std::ceil(std::log10(most))};
    if (axis.high <= axis.low) axis.high = axis.low + 1;
    return axis;
  }

  /// From 0 to 1.
  double place(double value) const { return (std::log10(value) - low) / (high - low); }
};

class Drawing {
 public:
  Drawing(LogAxis x, LogAxis y) : x_(x), y_(y) {}

  double at_x(double intensity) const {
    return kLeftMargin + x_.place(intensity) * (kPictureWidth - kLeftMargin - kRightMargin);
  }
  double at_y(double rate) const {
    return kPictureHeight - kBottomMargin -
           y_.place(rate) * (kPictureHeight - kTopMargin - kBottomMargin);
  }

  void line(double x1, double y1, double x2, double y2, const char* kind) {
    svg_ += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, x1,
        y1, x2, y2);
  }
  void text(double x, double y, const char* kind, const std::string& words) {
    svg_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kind, x, y,
                        escape_html(words));
  }
  void dot(double x, double y) {
    svg_ += fmt::format("<circle class=\"point\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n", x, y);
  }

  void axes();

  /// As fast as the bytes come, up to the ceiling.
  void slope(double bytes_per_second, double ceiling, const char* kind, const std::string& name);
  void ceiling(double rate, double first_byte_rate, const std::string& name);

  const std::string& svg() const { return svg_; }

 private:
  LogAxis x_, y_;
  std::string svg_{};
  int legends_ = 0;
};

void Drawing::axes() {
  const double left = kLeftMargin, right = kPictureWidth - kRightMargin, top = kTopMargin,
               bottom = kPictureHeight - kBottomMargin;
  for (double e = x_.low; e <= x_.high; ++e) {
    const double x = at_x(std::pow(10, e));
    line(x, top, x, bottom, "grid");
    text(x, bottom + 18, "tick", fmt::format("{:g}", std::pow(10, e)));
  }
  for (double e = y_.low; e <= y_.high; ++e) {
    const double y = at_y(std::pow(10, e));
    line(left, y, right, y, "grid");
    text(left - 30, y + 4, "tick", fmt::format("{:g}", std::pow(10, e - 12)));
  }
  text((left + right) / 2, kPictureHeight - 16, "axis", "FLOP per byte of the operands");
  svg_ += fmt::format(
      "<text class=\"axis\" transform=\"translate(20 {:.1f}) rotate(-90)\">TFLOP/s</text>\n",
      (top + bottom) / 2);
}

void Drawing::slope(double bytes_per_second, double ceiling, const char* kind,
                    const std::string& name) {
  const double x_low = std::pow(10, x_.low), x_high = std::pow(10, x_.high);
  const double y_low = std::pow(10, y_.low);
  const double begin = std::max(x_low, y_low / bytes_per_second);
  const double end = std::min(x_high, ceiling / bytes_per_second);
  if (end <= begin) return;
  line(at_x(begin), at_y(begin * bytes_per_second), at_x(end), at_y(end * bytes_per_second), kind);
  const double legend = kPictureWidth - kRightMargin + 8;
  const double y = kPictureHeight - kBottomMargin - 20 * ++legends_;
  line(legend, y, legend + 24, y, kind);
  text(legend + 30, y + 4, "name", name);
}

void Drawing::ceiling(double rate, double first_byte_rate, const std::string& name) {
  const double begin = std::max(std::pow(10, x_.low), rate / first_byte_rate);
  const double right = kPictureWidth - kRightMargin;
  line(std::min(at_x(begin), right), at_y(rate), right, at_y(rate), "roof");
  text(right + 8, at_y(rate) + 4, "name", name);
}

constexpr const char* kPictureStyle =
    "<style>text{font:12px sans-serif;fill:#333}.title{font-size:16px;font-weight:bold}"
    ".tick,.axis{text-anchor:middle}.grid{stroke:#e4e4e4}.roof{stroke:#1f5fa8;stroke-width:2}"
    ".cache{stroke-dasharray:6 "
    "4}.name{fill:#1f5fa8}.point{fill:#c0392b}.label{fill:#c0392b;font-weight:bold}</style>\n";

/// A flat roof, and the dtypes that lie under it.
struct Ceiling {
  double rate = 0;
  std::string name{};
};

/// Of rates that can be told apart one each; int8 counts other operations.
std::vector<Ceiling> ceilings_of(const Peaks& peaks) {
  constexpr double kSame = 1.03;
  std::vector<Ceiling> all;
  for (const auto& [dtype, rate] : peaks.flops_per_second) {
    if (dtype == DType::int8 || rate <= 0) continue;
    const auto near = [rate = rate](const Ceiling& other) {
      return std::max(rate, other.rate) < kSame * std::min(rate, other.rate);
    };
    const auto known = std::find_if(all.begin(), all.end(), near);
    if (known == all.end()) {
      all.push_back({rate, std::string(name_of(dtype))});
    } else {
      known->rate = std::max(known->rate, rate);
      known->name += fmt::format(", {}", name_of(dtype));
    }
  }
  return all;
}

/// What the picture must have room for.
LogAxis rates_axis(const Peaks& peaks, std::span<const RooflinePoint> points) {
  double least = 1e30, most = 1;
  const auto see = [&](double rate) {
    if (rate <= 0) return;
    least = std::min(least, rate);
    most = std::max(most, rate);
  };
  for (const Ceiling& ceiling : ceilings_of(peaks)) see(ceiling.rate);
  for (const RooflinePoint& point : points) see(point.flops_per_second);
  return LogAxis::around(std::min(least, most) / 3, most * 1.2);
}

/// The fastest way to copy; null if none is known.
const Peaks::CopyRate* fastest_copy(const Peaks& peaks) {
  const auto slower = [](const Peaks::CopyRate& a, const Peaks::CopyRate& b) {
    return a.bytes_per_second < b.bytes_per_second;
  };
  const auto fastest = std::max_element(peaks.copy.begin(), peaks.copy.end(), slower);
  return fastest == peaks.copy.end() ? nullptr : &*fastest;
}

/// With the ridge of every roof, and something of the slopes below.
LogAxis intensities_axis(const Peaks& peaks, std::span<const RooflinePoint> points) {
  constexpr double kBelow = 4;
  double least = 1, most = 100;
  const auto see = [&](double intensity) {
    if (intensity <= 0) return;
    least = std::min(least, intensity);
    most = std::max(most, intensity);
  };
  for (const RooflinePoint& point : points) see(point.intensity);
  const Peaks::CopyRate* const fastest = fastest_copy(peaks);
  for (const Ceiling& ceiling : ceilings_of(peaks)) {
    if (fastest == nullptr) break;
    see(ceiling.rate / fastest->bytes_per_second / kBelow);
    see(ceiling.rate / peaks.memory_bytes_per_second());
  }
  return LogAxis::around(least, most * 1.5);
}

void draw_roofs(Drawing& drawing, const Peaks& peaks) {
  const Peaks::CopyRate* const fastest = fastest_copy(peaks);
  if (fastest == nullptr) return;
  double highest = 0;
  for (const Ceiling& ceiling : ceilings_of(peaks)) {
    highest = std::max(highest, ceiling.rate);
    drawing.ceiling(ceiling.rate, fastest->bytes_per_second,
                    fmt::format("{} {:.4g} TFLOP/s", ceiling.name, ceiling.rate / 1e12));
  }
  const double memory = peaks.memory_bytes_per_second();
  drawing.slope(memory, highest, "roof", fmt::format("memory {:.3g} GB/s", memory / 1e9));
  if (fastest == &peaks.copy.back()) return;
  drawing.slope(fastest->bytes_per_second, highest, "roof cache",
                fmt::format("fastest cache {:.3g} GB/s", fastest->bytes_per_second / 1e9));
}

}  // namespace

std::string roofline_svg(const Peaks& peaks, std::span<const RooflinePoint> points,
                         const std::string& title) {
  Drawing drawing(intensities_axis(peaks, points), rates_axis(peaks, points));
  drawing.axes();
  draw_roofs(drawing, peaks);
  bool above = true;  // in turn, for passes of a problem lie close to each other
  for (const RooflinePoint& point : points) {
    if (point.intensity <= 0 || point.flops_per_second <= 0) continue;
    const double x = drawing.at_x(point.intensity), y = drawing.at_y(point.flops_per_second);
    drawing.dot(x, y);
    drawing.text(x + 8, above ? y - 8 : y + 18, "label", point.label);
    above = !above;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\">\n{2}<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text class=\"title\" x=\"{3:.0f}\" y=\"28\">{4}</text>\n{5}</svg>\n",
      kPictureWidth, kPictureHeight, kPictureStyle, kLeftMargin, escape_html(title), drawing.svg());
}

}  // namespace strobe::lab
