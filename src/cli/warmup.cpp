#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/options.h"
#include "measure/in_order.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/cuda.h"
#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe::cli {
namespace {

struct WarmupOptions {
  std::vector<std::string> architectures{};
  std::vector<std::string> kernels{};
  int threads = 0;
  OutputOptions output{};
};

/// Those of the GPUs that are here.
std::vector<std::string> present_architectures() {
  const CudaStatus status = cuda_status();
  std::set<std::string> names;
  for (const CudaDevice& device : status.devices) {
    if (!device.architecture.empty()) names.insert(device.architecture);
  }
  if (names.empty()) {
    throw Error(
        fmt::format("there is no GPU to compile for: {}; --arch sm_90a, say, compiles "
                    "without one",
                    status.unavailable));
  }
  return {names.begin(), names.end()};
}

std::vector<KernelConfiguration> choose(const WarmupOptions& options) {
  std::vector<KernelConfiguration> all;
  std::set<std::string> names;
  const auto architectures =
      options.architectures.empty() ? present_architectures() : options.architectures;
  for (const std::string& architecture : architectures) {
    for (auto& configuration : kernel_configurations(architecture)) {
      names.insert(configuration.kernel);
      all.push_back(std::move(configuration));
    }
  }
  for (const std::string& wanted : options.kernels) {
    if (names.contains(wanted)) continue;
    throw InvalidArgument("--kernel", fmt::format("is '{}', which is not known; there are {}",
                                                  wanted, fmt::join(names, ", ")));
  }
  if (!options.kernels.empty()) {
    std::erase_if(all, [&](const KernelConfiguration& c) {
      return std::count(options.kernels.begin(), options.kernels.end(), c.kernel) == 0;
    });
  }
  return all;
}

std::vector<std::string> row_of(const KernelConfiguration& what, const CompiledKernel& compiled) {
  return {what.kernel,
          what.configuration,
          what.architecture,
          fmt::format("{} of {}", compiled.registers, compiled.planned_registers),
          fmt::format("{}", compiled.spill_bytes),
          fmt::format("{}", compiled.stack_bytes),
          lab::bytes_text(compiled.shared_bytes),
          fmt::format("{:.3f}", compiled.seconds),
          compiled.from_cache ? "cache" : "compiler"};
}

nlohmann::json record_of(const KernelConfiguration& what, const CompiledKernel& compiled) {
  return lab::record_of_kind("compiled-kernel", {{"kernel", what.kernel},
                                                 {"configuration", what.configuration},
                                                 {"architecture", what.architecture},
                                                 {"registers", compiled.registers},
                                                 {"planned_registers", compiled.planned_registers},
                                                 {"spill_bytes", compiled.spill_bytes},
                                                 {"stack_bytes", compiled.stack_bytes},
                                                 {"shared_bytes", compiled.shared_bytes},
                                                 {"seconds", compiled.seconds},
                                                 {"from_cache", compiled.from_cache}});
}

int warmup(const WarmupOptions& options) {
  lab::RecordWriter records = options.output.records();
  lab::Table table({{"Kernel"},
                    {"Configuration"},
                    {"For"},
                    {"Registers", lab::Align::right},
                    {"Spilled bytes", lab::Align::right},
                    {"Stack bytes", lab::Align::right},
                    {"Shared", lab::Align::right},
                    {"Seconds", lab::Align::right},
                    {"From"}});
  const std::vector<KernelConfiguration> all = choose(options);
  Progress progress(all.size());
  lab::make_in_order<CompiledKernel>(
      all.size(), options.threads > 0 ? options.threads : machine().cores,
      [&](std::size_t i) { return compile_kernel(all[i]); },
      [&](std::size_t i, const CompiledKernel& compiled) {
        progress.show(i, fmt::format("{} for {}", all[i].kernel, all[i].architecture));
        table.add_row(row_of(all[i], compiled));
        records.write(record_of(all[i], compiled));
      });
  progress.clear();
  fmt::print(options.output.text(), "{}\nKept in {}\n", table.render(), kernel_cache_folder());
  return kDone;
}

}  // namespace

void add_warmup(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "warmup", "Compile GPU kernels ahead, with or without a GPU, and say what they take");
  auto options = std::make_shared<WarmupOptions>();
  command
      ->add_option("--arch", options->architectures,
                   "For these architectures, sm_80,sm_90a for instance, instead of the GPUs here")
      ->delimiter(',')
      ->type_name("NAMES");
  command->add_option("--kernel", options->kernels, "These kernels alone")
      ->delimiter(',')
      ->type_name("NAMES");
  add_threads(*command, options->threads);
  options->output.add_to(*command);
  command->footer("Example:\n  strobe warmup --arch sm_80,sm_90a --kernel pad_rows,read_all");
  command->callback([&status, options] { status = warmup(*options); });
}

}  // namespace strobe::cli
