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

nlohmann::json record_of(const CachedKernel& cached) {
  return {{"kind", "cached-kernel"},
          {"kernel", cached.kernel.kernel},
          {"configuration", cached.kernel.configuration},
          {"architecture", cached.kernel.architecture},
          {"compiler", cached.compiler},
          {"path", cached.path},
          {"bytes", cached.bytes},
          {"age_seconds", cached.age_seconds}};
}

int list_cache(const OutputOptions& output) {
  lab::RecordWriter records = output.records();
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
                   lab::bytes_text(cached.bytes),
                   duration_text(static_cast<double>(cached.age_seconds))});
    records.write(record_of(cached));
    bytes += cached.bytes;
  }
  fmt::print(output.text(), "{}{} kernels, {}, in {}\n", table.empty() ? "" : table.render() + "\n",
             all.size(), lab::bytes_text(bytes), kernel_cache_folder());
  return kDone;
}

int clear_cache(const OutputOptions& output) {
  lab::RecordWriter records = output.records();
  const std::int64_t bytes = clear_kernel_cache();
  records.write({{"kind", "cleared-cache"}, {"bytes", bytes}, {"folder", kernel_cache_folder()}});
  fmt::print(output.text(), "Removed {} from {}\n", lab::bytes_text(bytes), kernel_cache_folder());
  return kDone;
}

void add_action(CLI::App& cache, int& status, const char* name, const char* what,
                int (*act)(const OutputOptions&)) {
  CLI::App* command = cache.add_subcommand(name, what);
  auto output = std::make_shared<OutputOptions>();
  output->add_to(*command);
  command->footer(fmt::format("Example:\n  strobe cache {}", name));
  command->callback([&status, output, act] { status = act(*output); });
}

}  // namespace

void add_cache(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "cache", "Compiled GPU kernels on disk; STROBE_CACHE_DIR names another folder for them");
  command->require_subcommand(1);
  command->footer("Example:\n  strobe cache list");
  add_action(*command, status, "list", "What is kept, how large and how old it is", list_cache);
  add_action(*command, status, "clear", "Remove all of it", clear_cache);
}

}  // namespace strobe::cli
