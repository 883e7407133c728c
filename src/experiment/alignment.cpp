#include "experiment/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiment/subjects.h"
#include "report/charts.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/error.h"

namespace strobe::lab {
namespace {

/// The whole one in question, halves and eighths of it below, its neighbours, and whole ones above.
std::vector<std::int64_t> dims_around(std::int64_t dim, bool quick) {
  std::vector<std::int64_t> dims{dim, dim + 1, dim + 8};
  if (!quick) {
    for (const std::int64_t other : {dim / 2, dim * 5 / 8, dim * 3 / 4, dim * 7 / 8, dim - 1,
                                     dim + 2, dim + 4, dim + 16, dim + 32})
      dims.push_back(other);
  }
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  std::erase_if(dims, [](std::int64_t each) { return each < 1 || each > 512; });
  return dims;
}

std::int64_t padded_to(const TuningRecord& tuning) {
  for (const auto& [key, value] : tuning) {
    if (key == "padded") return std::stoll(value);
  }
  return 0;
}

void add_samples(Benchmark& all, const Benchmark& more) {
  std::vector<double>& samples = all.measurement.samples_ms;
  const std::vector<double>& others = more.measurement.samples_ms;
  samples.insert(samples.end(), others.begin(), others.end());
  all.measurement.ms = summarize(samples);
}

/// The dims take turns, a few rounds of them: a slow moment of the machine then meets several.
std::vector<AlignmentRow> time_dims(const ExperimentSetup& setup, Problem problem,
                                    const std::vector<std::int64_t>& dims) {
  const int rounds = setup.quick ? 1 : 3;
  ExperimentSetup round_setup = setup;
  round_setup.sampling.budget_s /= rounds;
  std::vector<AlignmentRow> rows(dims.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      setup.announce(fmt::format("head dim {}, round {} of {}", dims[i], round + 1, rounds));
      problem.dim = dims[i];
      std::vector<Benchmark> results = time_rivals(round_setup, {&flash_on(setup.device)}, problem);
      require_timed(results);
      if (round > 0) {
        add_samples(rows[i].result, results.front());
        continue;
      }
      rows[i] = {.dim = dims[i], .padded = padded_to(results.front().tuning)};
      rows[i].result = std::move(results.front());
    }
  }
  return rows;
}

const AlignmentRow& row_of_dim(const std::vector<AlignmentRow>& rows, std::int64_t dim) {
  return *std::find_if(rows.begin(), rows.end(), [dim](const auto& row) { return row.dim == dim; });
}

/// Percent by which a takes longer than b.
double longer_percent(const AlignmentRow& a, const AlignmentRow& b) {
  return 100 * (a.ms() / b.ms() - 1);
}

std::string dims_table(const std::vector<AlignmentRow>& rows, const AlignmentRow& whole) {
  Table table({{"Head dim", kRight},
               {"Time (ms)", kRight},
               {"Longer", kRight},
               {"TFLOP/s", kRight},
               {"Row (bytes)", kRight},
               {"Aligned load", kRight},
               {"Padded to", kRight},
               {"Check"}});
  for (const AlignmentRow& row : rows) {
    table.add_row({fmt::format("{}", row.dim), fmt::format("{:.3f}", row.ms()),
                   fmt::format("{:+.1f} %", longer_percent(row, whole)),
                   fmt::format("{:.4f}", row.tflops()), fmt::format("{}", row.row_bytes()),
                   fmt::format("{} B", row.load_bytes()),
                   row.padded > 0 ? fmt::format("{}", row.padded) : "-",
                   std::string(name_of(row.result.accuracy.verdict))});
  }
  return table.render();
}

std::string dims_chart(const std::vector<AlignmentRow>& rows, const Problem& problem) {
  LineChart::Line measured{.label = "measured"};
  for (const AlignmentRow& row : rows)
    measured.points.emplace_back(static_cast<double>(row.dim), row.tflops());
  return svg_of(LineChart{.title = "Rate against the head dim: " + problem.text(),
                          .x_title = "Head dim",
                          .y_title = "TFLOP/s",
                          .x_logarithmic = false,
                          .y_logarithmic = false,
                          .lines = {measured}});
}

Problem usual_alignment_problem(const ExperimentSetup& setup) {
  if (!setup.on_cpu()) {
    return {.batch = setup.quick ? 2 : 16,
            .seqlen_q = 2048,
            .heads = 16,
            .dim = 128,
            .dtype = DType::fp16};
  }
  return {.batch = 1,
          .seqlen_q = setup.quick ? 256 : 1024,
          .heads = 4,
          .dim = 128,
          .dtype = DType::fp32};
}

}  // namespace

Expectation small_drop(const AlignmentRow& whole, const AlignmentRow& odd) {
  constexpr double kMost = 20;
  const double drop = longer_percent(odd, whole);
  return {.expected = fmt::format("a head dim of {} costs little more than {}", odd.dim, whole.dim),
          .rule = fmt::format("at most {} % more time; more means that nothing is done about rows "
                              "that are not aligned",
                              kMost),
          .seen = fmt::format("{:+.1f} %, of which the work itself is {:+.1f} %", drop,
                              100 * (odd.result.flops / whole.result.flops - 1)),
          .conclusion = Expectation::decide(drop <= kMost)};
}

Expectation as_dear_as_the_next(const AlignmentRow& odd, const AlignmentRow& next) {
  constexpr double kWithin = 15;
  const double difference = longer_percent(odd, next);
  return {
      .expected = fmt::format("{} costs what {} costs, to which it is padded", odd.dim, next.dim),
      .rule = fmt::format("their times are within {} % of each other", kWithin),
      .seen = fmt::format("{:+.1f} %", difference),
      .conclusion = Expectation::decide(std::abs(difference) <= kWithin)};
}

Findings alignment_experiment(const ExperimentSetup& setup) {
  Problem problem = fitting_problem(setup, usual_alignment_problem(setup), [&](const Problem& p) {
    return planned_bytes(flash_on(setup.device), p, setup.options);
  });
  problem.pass = Pass::forward;
  constexpr std::int64_t kMostDim = 512 - 8;
  if (problem.dim > kMostDim) {
    throw InvalidArgument("--headdim", fmt::format("is {}, allowed is 1 to {} here, because 8 more "
                                                   "are looked at too",
                                                   problem.dim, kMostDim));
  }
  const std::vector<std::int64_t> dims = dims_around(problem.dim, setup.quick);
  const std::vector<AlignmentRow> rows = time_dims(setup, problem, dims);
  const AlignmentRow& whole = row_of_dim(rows, problem.dim);
  const AlignmentRow& odd = row_of_dim(rows, problem.dim + 1);
  Findings findings{
      .subject = subject_text(setup, problem) + ", flash, forward, with other head dims",
      .tables = dims_table(rows, whole),
      .expectations = {small_drop(whole, odd),
                       as_dear_as_the_next(odd, row_of_dim(rows, problem.dim + 8))},
      .why =
          "Rows are loaded in chunks of 16 bytes and multiplied in whole tiles. Where a row is "
          "no multiple of them, the next one begins in the middle of a chunk: loads become "
          "narrower, or bring what is not the row's, or rows are copied to where they are padded; "
          "and the last tile multiplies zeros.",
      .files = {{"alignment.svg", dims_chart(rows, problem)}}};
  for (const AlignmentRow& row : rows) {
    findings.timed.push_back({row.result,
                              {{"row_bytes", row.row_bytes()},
                               {"load_bytes", row.load_bytes()},
                               {"padded", row.padded},
                               {"longer_percent", longer_percent(row, whole)}}});
  }
  return findings;
}

}  // namespace strobe::lab
