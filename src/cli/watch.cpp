#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "measure/repeated_calls.h"
#include "report/record.h"
#include "report/text.h"
#include "strobe/error.h"

namespace strobe::cli {
namespace {

using Rounds = std::vector<lab::RepeatedCalls::Round>;

struct WatchOptions {
  ProblemOptions problem{};
  std::string pass{};  ///< "" is what the problem says
  std::string implementation{};
  RunOptions run{};
  OutputOptions output{};
  double seconds = 0;  ///< 0: until it is interrupted
  int rounds = 0;      ///< likewise
  double every = 1;
};

double tflops(const lab::RepeatedCalls::Round& round) {
  return round.flops_per_second / 1e12;
}

std::string round_line(std::size_t number, double elapsed, const lab::RepeatedCalls::Round& round) {
  const lab::Statistics& ms = round.measurement.ms;
  const std::string state = lab::state_text(round.state);
  return fmt::format("{:>5} {:>7.1f} s  {:>10.3f} ms  {:>10.3f} to {:<10.3f} {:>9.4f} TFLOP/s  {}",
                     number, elapsed, ms.median, ms.min, ms.max, tflops(round),
                     state.empty() ? "-" : state);
}

/// The rates of the latest rounds as a row of bars, of which the highest stands for the best.
std::string rate_bars(const Rounds& rounds) {
  constexpr std::size_t kMost = 40;
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double best = 0;
  for (const auto& round : rounds) best = std::max(best, round.flops_per_second);
  std::string bars;
  for (std::size_t i = rounds.size() > kMost ? rounds.size() - kMost : 0; i < rounds.size(); ++i) {
    const double part = best > 0 ? rounds[i].flops_per_second / best : 0;
    bars += kBars[static_cast<std::size_t>(std::clamp(part * 8, 0.0, 7.0))];
  }
  return bars;
}

/// Lines that are drawn over those of the round before on a terminal, and a line for each round
/// elsewhere.
class WatchView {
 public:
  explicit WatchView(std::FILE* out) : out_(out), live_(isatty(fileno(out)) != 0) {}

  void show(const Rounds& rounds, double elapsed) {
    const auto& latest = rounds.back();
    if (!live_) {
      fmt::print(out_, "{}\n", round_line(rounds.size(), elapsed, latest));
    } else {
      const lab::Statistics& ms = latest.measurement.ms;
      if (rounds.size() > 1) fmt::print(out_, "\x1b[{}A", kLines);
      line("Time",
           fmt::format("{:.3f} ms, {:.3f} to {:.3f} in this round", ms.median, ms.min, ms.max));
      line("Rate", fmt::format("{:.4f} TFLOP/s", tflops(latest)));
      line("", rate_bars(rounds));
      line("State", lab::state_text(latest.state));
      line("Round", fmt::format("{}, {:.1f} s; Ctrl-C ends it", rounds.size(), elapsed));
    }
    std::fflush(out_);
  }

 private:
  static constexpr int kLines = 5;

  void line(const char* name, const std::string& text) {
    fmt::print(out_, "\x1b[K{:<7}{}\n", name, text);
  }

  std::FILE* out_;
  bool live_;
};

nlohmann::json round_record(std::size_t number, double elapsed,
                            const lab::RepeatedCalls::Round& round) {
  const lab::Statistics& ms = round.measurement.ms;
  nlohmann::json record = lab::record_of_kind(
      "watch-round", {{"round", number},
                      {"seconds", elapsed},
                      {"calls", round.measurement.samples_ms.size()},
                      {"ms", {{"min", ms.min}, {"p50", ms.median}, {"max", ms.max}}},
                      {"tflops", tflops(round)}});
  if (round.state.clock_mhz) record["clock_mhz"] = *round.state.clock_mhz;
  if (round.state.power_w) record["power_w"] = *round.state.power_w;
  if (round.state.temperature_c) record["temperature_c"] = *round.state.temperature_c;
  if (round.state.memory_used_bytes) record["memory_used"] = *round.state.memory_used_bytes;
  return record;
}

void print_summary(std::FILE* text, const Rounds& rounds, double elapsed) {
  std::vector<double> medians;
  for (const auto& round : rounds) medians.push_back(round.measurement.ms.median);
  const lab::Statistics ms = lab::summarize(medians);
  const auto fastest =
      std::max_element(rounds.begin(), rounds.end(),
                       [](const auto& a, const auto& b) { return tflops(a) < tflops(b); });
  fmt::print(text,
             "{} round{} in {:.1f} s: median {:.3f} ms, rounds from {:.3f} to {:.3f} ms; best "
             "{:.4f} TFLOP/s, the last {:+.1f} % beside the first\n",
             rounds.size(), rounds.size() == 1 ? "" : "s", elapsed, ms.median, ms.min, ms.max,
             tflops(*fastest), 100 * (tflops(rounds.back()) / tflops(rounds.front()) - 1));
}

BenchSubject watched_subject(const WatchOptions& options) {
  const std::string pass =
      options.pass.empty() ? std::string(name_of(options.problem.choose().pass)) : options.pass;
  return choose_subject({.problem = options.problem,
                         .passes = {.pass = pass},
                         .implementation = options.implementation,
                         .run = options.run});
}

int watch(const WatchOptions& options) {
  const BenchSubject subject = watched_subject(options);
  lab::RecordWriter records = options.output.records();
  std::FILE* text = options.output.text();
  lab::RepeatedCalls calls(*subject.implementation, subject.problem, options.run.plan());
  fmt::print(text, "{} on {} ({})\n", full_name(*subject.implementation), subject.problem.text(),
             lab::tuning_text(calls.plan().tuning));
  const Interrupt interrupt;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  WatchView view(text);
  Rounds rounds;
  const auto goes_on = [&] {
    return !Interrupt::requested() &&
           (options.rounds == 0 || rounds.size() < static_cast<std::size_t>(options.rounds)) &&
           (options.seconds == 0 || elapsed() < options.seconds);
  };
  do {
    const double left = options.seconds > 0 ? options.seconds - elapsed() : options.every;
    rounds.push_back(calls.next(std::min(options.every, left)));
    records.write(round_record(rounds.size(), elapsed(), rounds.back()));
    rounds.back().measurement.samples_ms = {};  // hours of them would be much
    view.show(rounds, elapsed());
  } while (goes_on());
  print_summary(text, rounds, elapsed());
  return kDone;
}

}  // namespace

void add_watch(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "watch", "A problem again and again, with time, rate, clocks, power and memory as they are");
  auto o = std::make_shared<WatchOptions>();
  o->problem.add_to(*command);
  command->add_option("--pass", o->pass, "Which pass to repeat; the problem's own if not given")
      ->check(CLI::IsMember({"forward", "backward"}));
  command->add_option("--impl", o->implementation, "Implementation; the best one if not given")
      ->type_name("NAME");
  o->run.add_to(*command);
  o->run.add_variant_to(*command);
  command->add_option("--every", o->every, "Seconds of a round")
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--for", o->seconds, "End after so many seconds")
      ->check(CLI::Range(0.01, 1e7))
      ->type_name("SECONDS");
  command->add_option("--rounds", o->rounds, "End after so many rounds")
      ->check(CLI::Range(1, 1'000'000'000))
      ->type_name("N");
  o->output.add_to(*command);
  command->footer(
      "Without --for or --rounds it goes on until Ctrl-C, and then says what it saw.\n\n"
      "Example:\n  strobe watch --seqlen 512 --for 3");
  command->callback([&status, o] { status = watch(*o); });
}

}  // namespace strobe::cli
