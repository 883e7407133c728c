#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/options.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/cuda.h"

namespace strobe::cli {
namespace {

struct CacheOptions {
  std::string only{};  ///< "" is everything
  OutputOptions output{};

  bool wants(const char* what) const { return only.empty() || only == what; }
};

nlohmann::json record_of(const CachedKernel& cached) {
  return lab::record_of_kind("cached-kernel", {{"kernel", cached.kernel.kernel},
                                               {"configuration", cached.kernel.configuration},
                                               {"architecture", cached.kernel.architecture},
                                               {"compiler", cached.compiler},
                                               {"path", cached.path},
                                               {"bytes", cached.bytes},
                                               {"age_seconds", cached.age_seconds}});
}

nlohmann::json record_of(const KeptVariant& kept) {
  return lab::record_of_kind("tuned-variant", {{"gpu", kept.gpu},
                                               {"architecture", kept.architecture},
                                               {"compiler", kept.compiler},
                                               {"kernel", kept.kernel},
                                               {"options", kept.options},
                                               {"problem", kept.problem},
                                               {"variant", kept.tuned.variant},
                                               {"usual", kept.tuned.usual},
                                               {"ms", kept.tuned.ms},
                                               {"usual_ms", kept.tuned.usual_ms},
                                               {"path", kept.path},
                                               {"bytes", kept.bytes},
                                               {"age_seconds", kept.age_seconds}});
}

std::string age_text(std::int64_t seconds) {
  return duration_text(static_cast<double>(seconds));
}

void list_kernels(std::FILE* text, lab::RecordWriter& records) {
  lab::Table table({{"Kernel"},
                    {"Configuration"},
                    {"For"},
                    {"Compiler"},
                    {"Size", lab::Align::right},
                    {"Age", lab::Align::right}});
  std::int64_t bytes = 0;
  const std::vector<CachedKernel> all = cached_kernels();
  for (const CachedKernel& cached : all) {
    const KernelConfiguration& kernel = cached.kernel;
    table.add_row({kernel.kernel, kernel.configuration, kernel.architecture, cached.compiler,
                   lab::bytes_text(cached.bytes), age_text(cached.age_seconds)});
    records.write(record_of(cached));
    bytes += cached.bytes;
  }
  fmt::print(text, "{}{} kernels, {}, in {}\n", table.empty() ? "" : table.render() + "\n",
             all.size(), lab::bytes_text(bytes), kernel_cache_folder());
}

void list_tuned(std::FILE* text, lab::RecordWriter& records) {
  lab::Table table({{"Tuned for"},
                    {"On"},
                    {"Kernel"},
                    {"Variant"},
                    {"Usual"},
                    {"Faster", lab::Align::right},
                    {"Age", lab::Align::right}});
  const std::vector<KeptVariant> all = kept_variants();
  for (const KeptVariant& kept : all) {
    const auto& [variant, usual, ms, usual_ms] = kept.tuned;
    table.add_row({kept.problem + (kept.options.empty() ? "" : " --" + kept.options),
                   fmt::format("{}, {}", kept.gpu, kept.compiler), kept.kernel, variant, usual,
                   fmt::format("{:.1f} %", 100 * (usual_ms / ms - 1)), age_text(kept.age_seconds)});
    records.write(record_of(kept));
  }
  fmt::print(text, "{}{} tuned variants in {}\n", table.empty() ? "" : table.render() + "\n",
             all.size(), kept_variants_folder());
}

int list_cache(const CacheOptions& options) {
  lab::RecordWriter records = options.output.records();
  if (options.wants("kernels")) list_kernels(options.output.text(), records);
  if (options.wants("tuned")) list_tuned(options.output.text(), records);
  return kDone;
}

int clear_cache(const CacheOptions& options) {
  lab::RecordWriter records = options.output.records();
  const auto tell = [&](std::int64_t bytes, const std::string& folder) {
    records.write(lab::record_of_kind("cleared-cache", {{"bytes", bytes}, {"folder", folder}}));
    fmt::print(options.output.text(), "Removed {} from {}\n", lab::bytes_text(bytes), folder);
  };
  if (options.wants("kernels")) tell(clear_kernel_cache(), kernel_cache_folder());
  if (options.wants("tuned")) tell(clear_kept_variants(), kept_variants_folder());
  return kDone;
}

void add_action(CLI::App& cache, int& status, const char* name, const char* what,
                int (*act)(const CacheOptions&)) {
  CLI::App* command = cache.add_subcommand(name, what);
  auto options = std::make_shared<CacheOptions>();
  command->add_option("--only", options->only, "Compiled kernels, or tuned variants, alone")
      ->check(CLI::IsMember({"kernels", "tuned"}));
  options->output.add_to(*command);
  command->footer(fmt::format("Example:\n  strobe cache {}", name));
  command->callback([&status, options, act] { status = act(*options); });
}

}  // namespace

void add_cache(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "cache",
      "Compiled GPU kernels and tuned variants on disk; STROBE_CACHE_DIR names another folder");
  command->require_subcommand(1);
  command->footer("Example:\n  strobe cache list");
  add_action(*command, status, "list", "What is kept, how large and how old it is", list_cache);
  add_action(*command, status, "clear", "Remove all of it", clear_cache);
}

}  // namespace strobe::cli
