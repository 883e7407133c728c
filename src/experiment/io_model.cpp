// Bytes between memory and what computes, by the theory of FlashAttention and by a cache that is
// simulated access by access: for a length N, a head dim d and M of on-chip memory, the unfused
// computation moves on the order of N d + N^2, flash attention N^2 d^2 / M.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiment/growth.h"
#include "experiment/subjects.h"
#include "experiment/tiled_attention.h"
#include "report/charts.h"
#include "report/table.h"
#include "report/text.h"

namespace strobe::lab {
namespace {

/// One length with one size of on-chip memory.
struct IoPoint {
  std::int64_t memory = 0;
  TiledAttention shape{};
  Traffic flash_predicted{}, flash_seen{}, unfused_predicted{}, unfused_seen{};
};

struct IoGrid {
  std::vector<std::int64_t> lengths{}, memories{};
  std::vector<IoPoint> points{};

  const IoPoint& at(std::int64_t length, std::int64_t memory) const {
    return *std::find_if(points.begin(), points.end(), [&](const IoPoint& point) {
      return point.shape.length == length && point.memory == memory;
    });
  }
};

IoGrid simulate_grid(const ExperimentSetup& setup, const Problem& problem) {
  IoGrid grid;
  for (std::int64_t length = std::max<std::int64_t>(problem.keys() / 8, 1);
       length <= problem.keys(); length *= 2)
    grid.lengths.push_back(length);
  for (const std::int64_t kilobytes : {16, 32, 64, 128}) grid.memories.push_back(kilobytes * 1024);
  for (const std::int64_t length : grid.lengths) {
    for (const std::int64_t memory : grid.memories) {
      setup.announce(fmt::format("length {}, {} on the chip", length, bytes_text(memory)));
      const TiledAttention shape = TiledAttention::fitting(length, problem.dim, memory);
      grid.points.push_back({.memory = memory,
                             .shape = shape,
                             .flash_predicted = shape.predicted_flash(),
                             .flash_seen = shape.simulated_flash(memory),
                             .unfused_predicted = shape.predicted_unfused(),
                             .unfused_seen = shape.simulated_unfused(memory)});
    }
  }
  return grid;
}

std::string io_megabytes(const Traffic& traffic) {
  return fmt::format("{:.3f}", traffic.total() / 1e6);
}

std::string grid_table_text(const IoGrid& grid) {
  Table table({{"Length", kRight},
               {"On chip (kB)", kRight},
               {"Tile", kRight},
               {"Unfused, theory (MB)", kRight},
               {"simulated", kRight},
               {"Flash, theory (MB)", kRight},
               {"simulated", kRight},
               {"Saved", kRight}});
  for (const IoPoint& point : grid.points) {
    table.add_row({fmt::format("{}", point.shape.length), fmt::format("{}", point.memory / 1024),
                   fmt::format("{}", point.shape.tile), io_megabytes(point.unfused_predicted),
                   io_megabytes(point.unfused_seen), io_megabytes(point.flash_predicted),
                   io_megabytes(point.flash_seen),
                   fmt::format("{:.2f}x", point.unfused_seen.total() / point.flash_seen.total())});
  }
  return table.render();
}

/// What real implementations move, where somebody counts it.
std::string counted_text(const ExperimentSetup& setup, Problem problem) {
  problem.heads = problem.batch = 1;
  std::string text;
  for (const auto* implementation : {&flash_on(setup.device), &unfused_on(setup.device)}) {
    const MeasuredTraffic measured = measure_traffic(*implementation, problem, setup.options);
    if (!measured.bytes) return "Nothing is counted here: " + measured.by + "\n";
    text += fmt::format("{} on {}: {:.3f} MB counted ({})\n", full_name(*implementation),
                        problem.text(), *measured.bytes / 1e6, measured.by);
  }
  return text;
}

double deviation(const Traffic& seen, const Traffic& predicted) {
  return std::abs(seen.total() / predicted.total() - 1);
}

/// What lies in the cache as a whole is read once, which no theory of tiles denies.
bool outgrows_the_chip(const IoPoint& point) {
  const std::int64_t keys_and_values = 2 * point.shape.length * point.shape.dim * 4;
  return keys_and_values >= 2 * point.memory;
}

Expectation theory_is_right(const IoGrid& grid) {
  constexpr double kWithin = 0.2;
  double worst = 0;
  int looked_at = 0;
  for (const IoPoint& point : grid.points) {
    if (!outgrows_the_chip(point)) continue;
    ++looked_at;
    worst = std::max({worst, deviation(point.flash_seen, point.flash_predicted),
                      deviation(point.unfused_seen, point.unfused_predicted)});
  }
  return {
      .expected = "a cache that keeps what was used last moves what the theory says",
      .rule = fmt::format("where keys and values take twice what the chip holds, or more, every "
                          "simulated figure is within {:.0f} % of the predicted one",
                          100 * kWithin),
      .seen = fmt::format("{:.1f} % at most, of {} sizes", 100 * worst, looked_at),
      .conclusion = looked_at > 0 ? Expectation::decide(worst <= kWithin) : Conclusion::undecided};
}

Expectation grows_with_length(const IoGrid& grid) {
  constexpr double kLeast = 1.7, kMost = 2.2;
  std::vector<std::pair<double, double>> flash, unfused;
  for (const std::int64_t length : grid.lengths) {
    const IoPoint& point = grid.at(length, grid.memories.front());
    flash.emplace_back(static_cast<double>(length), point.flash_seen.total());
    unfused.emplace_back(static_cast<double>(length), point.unfused_seen.total());
  }
  const double of_flash = growth_exponent(flash), of_unfused = growth_exponent(unfused);
  const auto right = [=](double exponent) { return exponent >= kLeast && exponent <= kMost; };
  return {.expected = "with little on-chip memory both grow with the square of the length",
          .rule = fmt::format("both exponents are between {} and {}", kLeast, kMost),
          .seen = fmt::format("{:.2f} of flash attention, {:.2f} unfused", of_flash, of_unfused),
          .conclusion = Expectation::decide(right(of_flash) && right(of_unfused))};
}

Expectation shrinks_with_memory(const IoGrid& grid) {
  constexpr double kLeast = -1.3, kMost = -0.7;
  std::vector<std::pair<double, double>> points;
  for (const std::int64_t memory : grid.memories) {
    points.emplace_back(static_cast<double>(memory),
                        grid.at(grid.lengths.back(), memory).flash_seen.total());
  }
  const double exponent = growth_exponent(points);
  return {.expected = "flash attention moves half as much with twice the on-chip memory",
          .rule = fmt::format("the exponent, -1 in theory, is between {} and {}", kLeast, kMost),
          .seen = fmt::format("{:.2f}", exponent),
          .conclusion = Expectation::decide(exponent >= kLeast && exponent <= kMost)};
}

Expectation flash_saves(const IoGrid& grid) {
  constexpr double kTimes = 2;
  const IoPoint& largest = grid.at(grid.lengths.back(), grid.memories.back());
  const double times = largest.unfused_seen.total() / largest.flash_seen.total();
  return {.expected = "where d^2 numbers are less than what the chip holds, flash attention saves",
          .rule = fmt::format("at the longest sequence and the largest memory it moves {} times "
                              "less, simulated",
                              kTimes),
          .seen = fmt::format("{:.2f} times", times),
          .conclusion = Expectation::decide(times >= kTimes)};
}

std::string io_chart(const IoGrid& grid, const Problem& problem) {
  LineChart chart{.title = fmt::format("Memory traffic of a head, d {}: simulated, and in theory "
                                       "(dashed)",
                                       problem.dim),
                  .x_title = "Sequence length",
                  .y_title = "MB"};
  const auto add = [&](const std::string& label, std::int64_t memory, Traffic IoPoint::*which,
                       bool dashed) {
    LineChart::Line line{.label = label, .dashed = dashed};
    for (const std::int64_t length : grid.lengths)
      line.points.emplace_back(static_cast<double>(length),
                               (grid.at(length, memory).*which).total() / 1e6);
    chart.lines.push_back(std::move(line));
  };
  for (const std::int64_t memory : {grid.memories.front(), grid.memories.back()}) {
    const std::string size = fmt::format("{} kB", memory / 1024);
    add("unfused, " + size, memory, &IoPoint::unfused_seen, false);
    add("flash, " + size, memory, &IoPoint::flash_seen, false);
    add("flash in theory, " + size, memory, &IoPoint::flash_predicted, true);
  }
  return svg_of(chart);
}

}  // namespace

Findings io_model_experiment(const ExperimentSetup& setup) {
  const Problem problem = setup.problem(
      {.seqlen_q = setup.quick ? 512 : 2048, .heads = 1, .dim = 64, .dtype = DType::fp32});
  const IoGrid grid = simulate_grid(setup, problem);
  Findings findings{
      .subject = fmt::format("one head, lengths to {}, head dim {}, fp32, forward; accesses "
                             "replayed through a simulated cache",
                             problem.keys(), problem.dim),
      .tables = grid_table_text(grid) + counted_text(setup, problem),
      .expectations = {theory_is_right(grid), grows_with_length(grid), shrinks_with_memory(grid),
                       flash_saves(grid)},
      .why =
          "Unfused, the scores cross the bus four times, whatever the chip holds. Flash "
          "attention reads keys and values once for every block of queries; a block can be as "
          "large as the chip's memory divided by the head dim, so twice the memory halves the "
          "number of times.",
      .files = {{"io-model.svg", io_chart(grid, problem)}}};
  for (const IoPoint& point : grid.points) {
    findings.results.push_back({{"length", point.shape.length},
                                {"dim", point.shape.dim},
                                {"on_chip", point.memory},
                                {"tile", point.shape.tile},
                                {"flash_predicted", point.flash_predicted.total()},
                                {"flash_simulated", point.flash_seen.total()},
                                {"unfused_predicted", point.unfused_predicted.total()},
                                {"unfused_simulated", point.unfused_seen.total()}});
  }
  return findings;
}

}  // namespace strobe::lab
