#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/output_file.h"
#include "cli/sweep.h"
#include "report/csv.h"
#include "report/plot.h"
#include "strobe/error.h"

namespace strobe::cli {
namespace {

void require_free(const char* option, const std::string& path) {
  if (!is_there(option, path)) return;
  throw InvalidArgument(
      option,
      fmt::format("'{}' exists already; name another or remove it (--force replaces it, and "
                  "starts the records anew)",
                  path));
}

}  // namespace

void require_outputs(const SweepOptions& options) {
  require_own_file("--csv", options.csv, "--output", options.records_path());
  std::error_code none;
  if (!options.plots.empty() && is_there("--plots", options.plots) &&
      !std::filesystem::is_directory(options.plots, none)) {
    throw InvalidArgument("--plots", fmt::format("'{}' is not a folder", options.plots));
  }
  if (!options.csv.empty()) {
    if (!options.force) require_free("--csv", options.csv);
    require_output("--csv", options.csv, true);
  }
  if (!options.plots.empty()) {
    require_writable("--plots", options.plots, existing_part(options.plots));
  }
  if (options.force) return;
  for (const std::string& file : lab::plot_files()) {
    if (!options.plots.empty()) require_free("--plots", options.plots + "/" + file);
  }
}

void write_csv(const SweepOptions& options, const std::vector<nlohmann::json>& records) {
  if (options.csv.empty()) return;
  write_output("--csv", options.csv, lab::csv_of(records), options.force);
}

}  // namespace strobe::cli
