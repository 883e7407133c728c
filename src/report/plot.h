#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace strobe::lab {

/// One picture: a quantity against the sequence length, both on log axes.
struct Plot {
  struct Line {
    std::string implementation{};  ///< "" if it is the same for all
    std::string variant{};         ///< what else tells it from others: "d64, bf16"
    std::string pass{};
    bool names_pass = false;                          ///< whether there is another pass beside it
    std::vector<std::pair<double, double>> points{};  ///< by length

    std::string label() const;
  };

  std::string name{};      ///< "time_ms_causal_false"; its file is NAME.png
  std::string title{};     ///< "Time, causal mask"
  std::string subtitle{};  ///< what all lines have in common, and the machine
  std::string quantity{};  ///< the title of the vertical axis, with its unit
  std::vector<Line> lines{};
};

/// Time and speed without a mask and with a causal one, as far as there are results.
/// Implementation, pass, head dimension and dtype that vary make lines of their own, and so does
/// whatever else two results of the same length differ in.
std::vector<Plot> plots_of(std::span<const nlohmann::json> records);

/// The names of all files that plots_of could lead to.
std::vector<std::string> plot_files();

/// What gnuplot is told to draw the plot into a PNG file.
std::string gnuplot_script(const Plot& plot, const std::string& file);

/// Draws NAME.png for every plot into the folder, which is made if it is not there. Throws Error
/// naming the package if gnuplot is missing.
void draw(std::span<const Plot> plots, const std::string& folder);

}  // namespace strobe::lab
