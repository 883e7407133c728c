#include "report/roofline_svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/chart_frame.h"

namespace strobe::lab {
namespace {

class Drawing {
 public:
  Drawing(ChartAxis x, ChartAxis y) : frame_(x, y) {}

  ChartFrame& frame() { return frame_; }

  /// As fast as the bytes come, up to the ceiling.
  void slope(double bytes_per_second, double ceiling, const char* kind, const std::string& name);
  void ceiling(double rate, double first_byte_rate, const std::string& name);

 private:
  ChartFrame frame_;
  int legends_ = 0;
};

void Drawing::slope(double bytes_per_second, double ceiling, const char* kind,
                    const std::string& name) {
  const double begin = std::max(frame_.x().low(), frame_.y().low() / bytes_per_second);
  const double end = std::min(frame_.x().high(), ceiling / bytes_per_second);
  if (end <= begin) return;
  frame_.line(frame_.at_x(begin), frame_.at_y(begin * bytes_per_second), frame_.at_x(end),
              frame_.at_y(end * bytes_per_second), kind);
  constexpr double kLegend = ChartFrame::kRight + 8;
  const double y = ChartFrame::kBottom - 20 * ++legends_;
  frame_.line(kLegend, y, kLegend + 24, y, kind);
  frame_.text(kLegend + 30, y + 4, "name", name);
}

void Drawing::ceiling(double rate, double first_byte_rate, const std::string& name) {
  constexpr double kRight = ChartFrame::kRight;
  const double begin = std::max(frame_.x().low(), rate / first_byte_rate);
  frame_.line(std::min(frame_.at_x(begin), kRight), frame_.at_y(rate), kRight, frame_.at_y(rate),
              "roof");
  frame_.text(kRight + 8, frame_.at_y(rate) + 4, "name", name);
}

constexpr const char* kRoofStyle =
    ".roof{stroke:#1f5fa8;stroke-width:2}.cache{stroke-dasharray:6 4}.name{fill:#1f5fa8}"
    ".point{fill:#c0392b}.label{fill:#c0392b;font-weight:bold}";

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
ChartAxis rates_axis(const Peaks& peaks, std::span<const RooflinePoint> points) {
  double least = 1e30, most = 1;
  const auto see = [&](double rate) {
    if (rate <= 0) return;
    least = std::min(least, rate);
    most = std::max(most, rate);
  };
  for (const Ceiling& ceiling : ceilings_of(peaks)) see(ceiling.rate);
  for (const RooflinePoint& point : points) see(point.flops_per_second);
  return ChartAxis::logarithmic(std::min(least, most) / 3, most * 1.2);
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
ChartAxis intensities_axis(const Peaks& peaks, std::span<const RooflinePoint> points) {
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
  return ChartAxis::logarithmic(least, most * 1.5);
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
  ChartFrame& frame = drawing.frame();
  frame.axes("FLOP per byte of the operands", "TFLOP/s", 1e12);
  draw_roofs(drawing, peaks);
  bool above = true;  // in turn, for passes of a problem lie close to each other
  for (const RooflinePoint& point : points) {
    if (point.intensity <= 0 || point.flops_per_second <= 0) continue;
    const double x = frame.at_x(point.intensity), y = frame.at_y(point.flops_per_second);
    frame.dot(x, y, "point");
    frame.text(x + 8, above ? y - 8 : y + 18, "label", point.label);
    above = !above;
  }
  return frame.document(title, kRoofStyle);
}

}  // namespace strobe::lab
