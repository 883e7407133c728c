#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/run_options.h"
#include "measure/peaks.h"
#include "workload/estimate.h"
#include "workload/sweep_preset.h"

// What the parts of `strobe sweep` share.
namespace strobe::cli {

struct SweepOptions {
  std::map<std::string, std::string> lists{};  ///< by the names of the settings
  std::vector<std::string> implementations{};
  std::string pass{}, preset{};
  std::int64_t shrink = 0;  ///< 0: chosen
  std::string output{}, csv{}, plots{};
  bool force = false, dry_run = false;
  RunOptions run{};
  SamplingOptions sampling{.budget_s = 0.5};

  /// The file of records: of the sweep's name if none is given.
  std::string records_path() const {
    return !output.empty() ? output : (preset.empty() ? "sweep" : preset) + ".jsonl";
  }
};

/// What is to be measured, and how it is to be shown.
struct Sweep {
  std::vector<lab::Grid> grids{};
  lab::TableForm form = lab::TableForm::list;
  std::int64_t shrink = 1;
  std::vector<lab::Point> points{};
};

/// How the sampler goes about a point.
lab::SamplingPolicy policy_of(const SweepOptions& options);

/// What estimates are made from: the CPU, which checks the results wherever they are computed.
lab::Pace pace_of(const SweepOptions& options);

/// Measures the points, shows how far it is, and gives each result, as a record, to `keep`.
void measure_all(std::span<const lab::Point> points, const SweepOptions& options,
                 const Sweep& sweep, const lab::Peaks& peaks,
                 const std::function<void(const nlohmann::json&)>& keep);

/// Throws InvalidArgument if the CSV file or the plots would replace something, or cannot be
/// written: better known before the work than after it.
void require_outputs(const SweepOptions& options);

void write_csv(const SweepOptions& options, const std::vector<nlohmann::json>& records);

}  // namespace strobe::cli
