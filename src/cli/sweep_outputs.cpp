#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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
  if (!std::filesystem::exists(path)) return;
  throw InvalidArgument(
      option,
      fmt::format("'{}' exists already; name another or remove it (--force replaces it, and "
                  "starts the records anew)",
                  path));
}

}  // namespace

void require_outputs(const SweepOptions& options) {
  if (!options.csv.empty() && options.csv == options.records_path()) {
    throw InvalidArgument(
        "--csv", fmt::format("'{}' is where the records go; name another file", options.csv));
  }
  if (!options.plots.empty() && std::filesystem::exists(options.plots) &&
      !std::filesystem::is_directory(options.plots)) {
    throw InvalidArgument("--plots", fmt::format("'{}' is not a folder", options.plots));
  }
  if (!options.csv.empty()) {
    require_writable("--csv", options.csv, std::filesystem::path(options.csv).parent_path());
  }
  if (!options.plots.empty()) {
    require_writable("--plots", options.plots, existing_part(options.plots));
  }
  if (options.force) return;
  if (!options.csv.empty()) require_free("--csv", options.csv);
  for (const std::string& file : lab::plot_files()) {
    if (!options.plots.empty()) require_free("--plots", options.plots + "/" + file);
  }
}

void write_csv(const SweepOptions& options, const std::vector<nlohmann::json>& records) {
  if (options.csv.empty()) return;
  // Should another program have made the file by now, it is not ours to write.
  const int mode = O_WRONLY | O_CREAT | O_CLOEXEC | (options.force ? O_TRUNC : O_EXCL);
  const int file = open(options.csv.c_str(), mode, 0666);
  const std::string text = lab::csv_of(records);
  const bool written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const std::string why = std::strerror(errno);
  if (file >= 0) close(file);
  if (!written) throw Error(fmt::format("'{}' cannot be written: {}", options.csv, why));
}

}  // namespace strobe::cli
