#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strobe::lab {

/// One direction of a chart: whole powers of ten that hold what is to be seen, or round steps.
class ChartAxis {
 public:
  static ChartAxis logarithmic(double least, double most);
  static ChartAxis linear(double least, double most);

  /// From 0 to 1.
  double place(double value) const;

  double low() const;
  double high() const;

  /// The values that lines of the grid stand for.
  std::vector<double> ticks() const;

 private:
  ChartAxis(bool logarithmic, double low, double high, double step)
      : logarithmic_(logarithmic), low_(low), high_(high), step_(step) {}

  bool logarithmic_;
  double low_, high_, step_;  ///< of a logarithmic axis the exponents
};

/// A chart as SVG that needs no other file: two axes, and what is drawn between them.
class ChartFrame {
 public:
  static constexpr double kWidth = 820, kHeight = 520;
  static constexpr double kLeft = 80, kRight = kWidth - 210, kTop = 56, kBottom = kHeight - 60;

  ChartFrame(ChartAxis x, ChartAxis y) : x_(x), y_(y) {}

  const ChartAxis& x() const { return x_; }
  const ChartAxis& y() const { return y_; }
  double at_x(double value) const { return kLeft + x_.place(value) * (kRight - kLeft); }
  double at_y(double value) const { return kBottom - y_.place(value) * (kBottom - kTop); }

  /// `style` is a class of the style sheet.
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void text(double x, double y, std::string_view style, const std::string& words);
  void dot(double x, double y, std::string_view style);
  void rectangle(double x, double y, double width, double height, std::string_view style);

  /// The grid with its values, those of the vertical axis in `y_unit`.
  void axes(const std::string& x_title, const std::string& y_title, double y_unit = 1);

  /// The whole file; `style` are the rules of the classes that are not the frame's own.
  std::string document(const std::string& title, std::string_view style) const;

 private:
  ChartAxis x_, y_;
  std::string svg_{};
};

}  // namespace strobe::lab
