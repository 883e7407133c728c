#include "cli/sweep.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/common.h"
#include "report/plot.h"
#include "report/record_log.h"
#include "report/sweep_table.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/error.h"
#include "strobe/registry.h"
#include "verify/buffer.h"

namespace strobe::cli {
namespace {

using nlohmann::json;

constexpr double kPresetSeconds = 120;  ///< what a preset is scaled to

// ---- What is asked for ---------------------------------------------------------------------

std::vector<Pass> passes_of(const std::string& name) {
  if (name == "forward") return {Pass::forward};
  if (name == "backward") return {Pass::backward};
  return {Pass::forward, Pass::backward};
}

/// The full names of what is asked for, or else of what the grid has.
std::vector<std::string> choose_implementations(const SweepOptions& options,
                                                const std::vector<std::string>& of_grid) {
  const Implementations chosen = options.implementations.empty()
                                     ? options.run.find_some(of_grid)
                                     : options.run.find(options.implementations);
  std::vector<std::string> names;
  for (const Implementation* implementation : chosen) names.push_back(full_name(*implementation));
  return names;
}

/// The preset, or one grid of defaults, with what the command line says instead.
Sweep read_grids(const SweepOptions& options) {
  Sweep sweep{.grids = {lab::Grid{}}};
  if (!options.preset.empty()) {
    const lab::SweepPreset& preset = lab::find_sweep_preset(options.preset);
    sweep.grids = preset.grids;
    sweep.form = preset.form;
  }
  for (lab::Grid& grid : sweep.grids) {
    for (const lab::Setting& setting : lab::settings()) {
      const auto list = options.lists.find(std::string(setting.name));
      if (list != options.lists.end()) set_axis(grid, read_axis(setting, list->second));
    }
    if (!options.pass.empty()) grid.passes = passes_of(options.pass);
    grid.implementations = choose_implementations(options, grid.implementations);
  }
  return sweep;
}

std::vector<lab::Point> points_at(const Sweep& sweep, std::int64_t shrink) {
  std::vector<lab::Grid> grids;
  for (const lab::Grid& grid : sweep.grids) grids.push_back(shortened(grid, shrink));
  return points_of(grids);
}

/// By how much the sweep that the file holds was shortened: going on with it must not depend on
/// how fast the machine seems this time.
std::optional<std::int64_t> recorded_shrink(const SweepOptions& options) {
  std::error_code none;  // what is wrong with it is said when it is opened
  if (options.force || !std::filesystem::exists(options.records_path(), none)) return std::nullopt;
  const lab::RecordLog log(options.records_path(), false);
  const json::json_pointer place("/sweep/shrink");
  if (log.records().empty() || !log.records().front().contains(place)) return std::nullopt;
  const json& shrink = log.records().front().at(place);
  if (!shrink.is_number_integer() || shrink < 1) return std::nullopt;
  return shrink.get<std::int64_t>();
}

Implementations implementations_of(const std::vector<lab::Point>& points) {
  Implementations implementations;
  for (const lab::Point& point : points)
    implementations.push_back(&Registry::instance().find(point.implementation));
  return implementations;
}

void announce_shrink(const SweepOptions& options, const Sweep& sweep, const lab::Pace& pace) {
  if (sweep.shrink == 1) return;
  const std::vector<lab::Point> whole = points_at(sweep, 1);
  std::int64_t bytes = 0;
  for (const lab::Point& point : whole) bytes = std::max(bytes, operand_bytes(point));
  fmt::print(stderr,
             "{} is scaled to this machine: sequence lengths divided by {}; --shrink 1 runs it "
             "whole, about {} and {} of operands\n",
             options.preset, sweep.shrink, duration_text(estimated_seconds(whole, pace)),
             lab::bytes_text(bytes));
}

void choose_points(const SweepOptions& options, const lab::Pace& pace, Sweep& sweep) {
  const bool chosen = options.shrink == 0 && !options.preset.empty() &&
                      !options.lists.contains("seqlen") && !options.lists.contains("lengths");
  const std::int64_t available = lab::available_memory();
  if (chosen) {
    const auto recorded = recorded_shrink(options);
    sweep.shrink =
        recorded ? *recorded : lab::fitting_shrink(sweep.grids, pace, available, kPresetSeconds);
    announce_shrink(options, sweep, pace);
  } else {
    sweep.shrink = std::max<std::int64_t>(options.shrink, 1);
  }
  sweep.points = points_at(sweep, sweep.shrink);
  lab::require_memory(sweep.points, available);
}

// ---- What there is already, and what comes of it -------------------------------------------

std::vector<lab::RecordKey> keys_of(const std::vector<lab::Point>& points,
                                    const SweepOptions& options, int threads) {
  PlanOptions plan = options.run.plan();
  plan.threads = threads;
  std::vector<lab::RecordKey> keys;
  for (const lab::Point& point : points) {
    const Device::Kind kind = Registry::instance().find(point.implementation).device();
    keys.push_back({point.implementation, point.problem.text(),
                    lab::conditions_here(kind, plan, options.sampling.policy())});
  }
  return keys;
}

/// The records of the file by the points that they are results of; empty where there is none yet.
std::vector<json> recorded(const lab::RecordLog& log, const SweepOptions& options,
                           const Sweep& sweep, int threads) {
  const lab::Progression progress =
      lab::progression(keys_of(sweep.points, options, threads), log.records());
  if (progress.stranger) {
    const lab::RecordKey key = lab::key_of(log.records()[*progress.stranger]);
    throw InvalidArgument(
        "--output",
        fmt::format("'{}' holds another sweep: its record {} is of {} on {} ({}), which "
                    "is not asked for; name another file, or add --force to start it anew",
                    log.path(), *progress.stranger + 1, key.implementation, key.problem,
                    key.conditions));
  }
  std::vector<json> records(sweep.points.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!progress.done[i]) continue;
    records[i] = log.records()[*progress.done[i]];
    ++count;
  }
  if (log.torn_bytes() > 0) {
    fmt::print(stderr, "'{}' ends in the middle of a record; its {} bytes are cut off\n",
               log.path(), log.torn_bytes());
  }
  if (count > 0) {
    fmt::print(stderr, "'{}' holds {} of {} results, which are not measured again\n", log.path(),
               count, records.size());
  }
  return records;
}

/// Every record in the order of the points; what the file lacks is measured and added to it.
std::vector<json> complete(lab::RecordLog& log, const SweepOptions& options, const Sweep& sweep,
                           const lab::Peaks& peaks) {
  std::vector<json> records = recorded(log, options, sweep, peaks.threads);
  std::vector<lab::Point> missing;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!records[i].is_null()) continue;
    missing.push_back(sweep.points[i]);
    places.push_back(i);
  }
  auto place = places.begin();
  measure_all(missing, options, sweep, peaks, [&](const json& record) {
    log.append(record);
    records[*place++] = record;
  });
  return records;
}

void print_dry_run(const Sweep& sweep, const lab::Pace& pace) {
  constexpr auto kRight = lab::Align::right;
  lab::Table table({{"Implementation"}, {"Problem"}, {"About (s)", kRight}, {"Operands", kRight}});
  for (const lab::Point& point : sweep.points) {
    table.add_row({point.implementation, point.problem.text(),
                   fmt::format("{:.2f}", estimated_seconds(point, pace)),
                   lab::bytes_text(operand_bytes(point))});
  }
  fmt::print("{}{} points, about {}\n", table.render(), sweep.points.size(),
             duration_text(estimated_seconds(sweep.points, pace)));
}

void print_results(lab::TableForm form, const std::vector<json>& records) {
  fmt::print("{}", form == lab::TableForm::throughput ? lab::throughput_table(records)
                   : form == lab::TableForm::grid     ? lab::grid_table(records)
                                                      : lab::list_table(records));
  for (const json& record : records) {
    if (!record.contains("reason")) continue;
    fmt::print("{} on {}: {}\n", record["implementation"].get<std::string>(),
               record["problem"].get<std::string>(), record["reason"].get<std::string>());
  }
  std::fflush(stdout);
}

int exit_status(const std::vector<json>& records) {
  bool anything = false;
  for (const json& record : records) {
    const std::string status = record.value("status", "");
    if (status == lab::name_of(lab::Status::failed)) return kCheckFailed;
    anything = anything || status == lab::name_of(lab::Status::ok);
  }
  return anything ? kDone : kNotPossible;
}

int sweep(const SweepOptions& options) {
  options.run.require_device();
  Sweep sweep = read_grids(options);
  require_outputs(options);
  const lab::Pace pace = pace_of(options);
  choose_points(options, pace, sweep);
  if (options.dry_run) {
    print_dry_run(sweep, pace);
    return kDone;
  }
  const lab::Peaks peaks =
      lab::peaks_of(options.run.device_of(implementations_of(sweep.points)), options.run.threads);
  lab::RecordLog log(options.records_path(), options.force);
  const std::vector<json> records = complete(log, options, sweep, peaks);
  print_results(sweep.form, records);
  write_csv(options, records);
  if (!options.plots.empty()) draw(lab::plots_of(records), options.plots);
  return exit_status(records);
}

// ---- The command line ----------------------------------------------------------------------

void add_axes(CLI::App& command, SweepOptions& options) {
  for (const lab::Setting& setting : lab::settings()) {
    const std::string name(setting.name);
    CLI::Option* option =
        command
            .add_option_function<std::string>(
                setting.flags(),
                [&options, name](const std::string& list) { options.lists[name] = list; },
                std::string(setting.help))
            ->type_name(fmt::format("{},...", setting.value))
            ->group("Axes");
    if (setting.name == "causal") option->expected(0, 1)->type_name("[yes|no|both]");
  }
  command.add_option("--pass", options.pass, "Which pass to measure; both if nothing else is said")
      ->check(CLI::IsMember({"forward", "backward", "both"}))
      ->group("Axes");
  command
      .add_option("--impl", options.implementations,
                  "Implementations, with commas; flash if "
                  "nothing else is said")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->group("Axes");
}

std::string preset_help() {
  std::string text = "A sweep with a name, whose axes those on the command line replace:";
  for (const lab::SweepPreset& preset : lab::sweep_presets()) {
    text += fmt::format("\n{}: {}", preset.name, preset.help);
  }
  return text;
}

constexpr const char* kFooter =
    "A list has commas. A size may be a range, 512:16384:*2 or 256:1024:+256, or follow another:\n"
    "--batch tokens/16384 (16384 divided by seqlen), --nheads hidden/2048, --kv-heads nheads/4.\n"
    "A sweep that was stopped goes on where it was when the same command is given again.\n\n"
    "Example:\n"
    "  strobe sweep --seqlen 64:256:*2 --nheads 2 --causal both --budget 0.1 -o lengths.jsonl";

}  // namespace

void add_sweep(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "sweep", "A grid of problems and implementations: records, tables, CSV and plots");
  auto o = std::make_shared<SweepOptions>();
  add_axes(*command, *o);
  command->add_option("--preset", o->preset, preset_help())->type_name("NAME");
  command
      ->add_option("--shrink", o->shrink,
                   "Divide the sequence lengths, and tokens in all; a preset chooses it so that it "
                   "takes about two minutes")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("-o,--output", o->output,
                   "File of records, one JSON object a line, that results are added to as they "
                   "come; sweep.jsonl, or PRESET.jsonl, if not given")
      ->type_name("FILE");
  command->add_option("--csv", o->csv, "Also write the results as CSV")->type_name("FILE");
  command
      ->add_option("--plots", o->plots,
                   "Also draw time and speed against the sequence length as PNG files, by gnuplot")
      ->type_name("FOLDER");
  command->add_flag("--force", o->force, "Replace files that exist, and measure everything anew");
  o->run.add_to(*command);
  o->sampling.add_to(*command);
  command->add_flag("--dry-run", o->dry_run,
                    "Print the points with estimates, and measure nothing");
  command->footer(kFooter);
  command->callback([&status, o] { status = sweep(*o); });
}

}  // namespace strobe::cli
