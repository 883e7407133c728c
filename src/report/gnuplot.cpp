// How a plot looks, and gnuplot, which draws it.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "report/palette.h"
#include "report/plot.h"
#include "report/programs.h"
#include "strobe/error.h"

namespace strobe::lab {
namespace {

// Filled shapes for what goes forward; the shape with the next lower number is its outline.
constexpr int kShapes[] = {7, 5, 9, 11, 13};

struct Extent {
  double low = 0, high = 0;
};

template <class Pick>
Extent extent_of(const Plot& plot, const Pick& pick) {
  Extent extent{INFINITY, 0};
  for (const auto& line : plot.lines) {
    for (const auto& point : line.points) {
      extent.low = std::min(extent.low, pick(point));
      extent.high = std::max(extent.high, pick(point));
    }
  }
  return extent;
}

/// gnuplot's single quotes take everything but themselves, which are doubled.
std::string gnuplot_string(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += c;
    result += c == '\n' ? ' ' : c;
  }
  return result + "'";
}

/// "512", "2k": lengths as people say them.
std::string length_text(double length) {
  const bool thousands = length >= 1024 && std::fmod(length, 1024) == 0;
  return thousands ? fmt::format("{}k", length / 1024) : fmt::format("{}", length);
}

/// A tic for every length that was measured, as long as they can be read.
std::string length_tics(const Plot& plot) {
  constexpr std::size_t kMost = 12;
  std::set<double> lengths;
  for (const auto& line : plot.lines) {
    for (const auto& [length, value] : line.points) lengths.insert(length);
  }
  std::vector<std::string> tics;
  double previous = 0;
  for (const double length : lengths) {
    const bool room = length > previous * 1.15;
    if (room) tics.push_back(fmt::format("'{}' {}", length_text(length), length));
    if (room) previous = length;
  }
  if (tics.size() > kMost) return "set xtics autofreq";
  return fmt::format("set xtics ({})", fmt::join(tics, ", "));
}

/// Tics at 1, 2, 5, 10, ... over a short range; at powers of ten over a long one.
std::string value_tics(const Extent& range) {
  const double decades = std::log10(range.high / range.low);
  std::vector<double> steps{1};
  if (decades < 2.5) steps = {1, 2, 5};
  if (decades < 0.6) steps = {1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<std::string> tics;
  for (double power = std::floor(std::log10(range.low)); power <= std::log10(range.high); ++power) {
    for (const double step : steps) {
      const double tic = step * std::pow(10, power);
      if (tic >= range.low && tic <= range.high) tics.push_back(fmt::format("'{0:g}' {0:g}", tic));
    }
  }
  return fmt::format("set ytics ({})", fmt::join(tics, ", "));
}

std::string frame(const Plot& plot, const std::string& file) {
  const Extent lengths = extent_of(plot, [](const auto& point) { return point.first; });
  const Extent values = extent_of(plot, [](const auto& point) { return point.second; });
  const Extent range{values.low / 1.3, values.high * 1.3};
  return fmt::format(
      R"(set terminal pngcairo size 1280,800 font 'DejaVu Sans,13' background '#FFFFFF'
set output {}
set encoding utf8
set margins 11, -1, 4.5, 5
set label 1 {} at graph 0, graph 1.085 left noenhanced font 'DejaVu Sans Bold,17' textcolor '#222222'
set label 2 {} at graph 0, graph 1.033 left noenhanced font 'DejaVu Sans,11' textcolor '#666666'
set xlabel 'Sequence length (tokens)' textcolor '#222222'
set ylabel {} noenhanced offset -1,0 textcolor '#222222'
set logscale x 2
set logscale y 10
set xrange [{}:{}]
set yrange [{}:{}]
{}
{}
set tics nomirror scale 0.6 textcolor '#444444'
set grid xtics ytics linetype 1 linewidth 1 linecolor '#E9E9E9'
set border 3 back linewidth 1 linecolor '#888888'
set key outside right top vertical Left reverse noenhanced samplen 3.2 spacing 1.45 width 1
)",
      gnuplot_string(file), gnuplot_string(plot.title), gnuplot_string(plot.subtitle),
      gnuplot_string(plot.quantity), lengths.low / 1.12, lengths.high * 1.12, range.low, range.high,
      length_tics(plot), value_tics(range));
}

std::string colour_text(const Colour& colour, const Colour& other, double share) {
  const auto mixed = [share](double a, double b) {
    return static_cast<int>(std::lround(a + (b - a) * share));
  };
  return fmt::format("#{:02X}{:02X}{:02X}", mixed(colour.red, other.red),
                     mixed(colour.green, other.green), mixed(colour.blue, other.blue));
}

/// One of `count` shades of a colour, from light to dark.
std::string shade_of(const Colour& colour, std::size_t index, std::size_t count) {
  if (count < 2) return colour_text(colour, colour, 0);
  const double place = static_cast<double>(index) / static_cast<double>(count - 1);
  return place < 0.6 ? colour_text(colour, {255, 255, 255}, 0.62 * (1 - place / 0.6))
                     : colour_text(colour, {0, 0, 0}, 0.45 * (place - 0.6) / 0.4);
}

/// A colour for an implementation and its shades for the variants, or colours for the variants if
/// there is one implementation. The backward pass is dashed and hollow.
class Styles {
 public:
  explicit Styles(const Plot& plot) {
    for (const Plot::Line& line : plot.lines) {
      add(implementations_, line.implementation);
      add(variants_, line.variant);
    }
  }

  std::string of(const Plot::Line& line) const {
    const std::size_t family = place(implementations_, line.implementation);
    const std::size_t variant = place(variants_, line.variant);
    const bool shades = implementations_.size() > 1;
    const Colour& colour = kPalette[(shades ? family : variant) % std::size(kPalette)];
    const bool dashed = line.names_pass && line.pass == "backward";
    const int shape =
        kShapes[(shades ? family : variant / std::size(kPalette)) % std::size(kShapes)];
    return fmt::format(
        "linewidth 2.4 linecolor '{}' dashtype {} pointtype {} pointsize 1.15",
        shades ? shade_of(colour, variant, variants_.size()) : shade_of(colour, 0, 1),
        dashed ? "(14,8)" : "1", dashed ? shape - 1 : shape);
  }

 private:
  using Names = std::vector<std::string>;

  static std::size_t place(const Names& names, const std::string& name) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  }

  static void add(Names& names, const std::string& name) {
    if (place(names, name) == names.size()) names.push_back(name);
  }

  Names implementations_, variants_;
};

void run_gnuplot(const std::string& script) {
  // Should gnuplot stop reading, that is an error of its and not the end of us.
  const auto handler = std::signal(SIGPIPE, SIG_IGN);
  std::FILE* const pipe = popen("gnuplot", "w");
  if (pipe != nullptr) std::fwrite(script.data(), 1, script.size(), pipe);
  const int status = pipe == nullptr ? -1 : pclose(pipe);
  std::signal(SIGPIPE, handler);
  if (status != 0) throw Error("gnuplot could not draw the plots; what it said is above");
}

}  // namespace

std::string gnuplot_script(const Plot& plot, const std::string& file) {
  std::string script = frame(plot, file);
  const Styles styles(plot);
  std::vector<std::string> pieces;
  for (const Plot::Line& line : plot.lines) {
    script += fmt::format("$line{} << END\n", pieces.size());
    for (const auto& [length, value] : line.points) {
      script += fmt::format("{} {}\n", length, value);
    }
    script += "END\n";
    pieces.push_back(fmt::format("$line{} with linespoints {} title {}", pieces.size(),
                                 styles.of(line), gnuplot_string(line.label())));
  }
  return script + fmt::format("plot {}\nset output\n", fmt::join(pieces, ", \\\n     "));
}

void draw(std::span<const Plot> plots, const std::string& folder) {
  if (find_program("gnuplot").empty()) {
    throw Error(
        "the plots cannot be drawn: gnuplot is not installed; it is in the package gnuplot-nox of "
        "Debian and Ubuntu");
  }
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw Error(fmt::format("'{}' cannot be made: {}", folder, problem.message()));
  for (const Plot& plot : plots) {
    const std::filesystem::path file = std::filesystem::path(folder) / (plot.name + ".png");
    // Under another name at first: what bears the name is whole.
    const std::filesystem::path part = file.string() + ".part";
    run_gnuplot(gnuplot_script(plot, part));
    std::filesystem::rename(part, file, problem);
    if (problem) throw Error(fmt::format("'{}': {}", file.string(), problem.message()));
  }
}

}  // namespace strobe::lab
