#pragma once

#include <string>
#include <utility>
#include <vector>

namespace strobe::lab {

/// Quantities against one other. What a logarithmic axis has no place for is left out.
struct LineChart {
  struct Line {
    std::string label{};
    std::vector<std::pair<double, double>> points{};
    bool dashed = false;  ///< a prediction, say
    bool joined = true;   ///< otherwise single points
  };

  std::string title{};
  std::string x_title{}, y_title{};
  bool x_logarithmic = true, y_logarithmic = true;
  std::vector<Line> lines{};
};

/// Quantities of the same unit side by side.
struct BarChart {
  struct Bar {
    std::string label{};
    double value = 0;
    std::size_t kind = 0;  ///< bars of one kind have one colour
  };

  std::string title{};
  std::string unit{};
  std::vector<Bar> bars{};
};

/// Pictures that need no other file.
std::string svg_of(const LineChart& chart);
std::string svg_of(const BarChart& chart);

}  // namespace strobe::lab
