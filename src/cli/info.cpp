#include <fmt/format.h>

#include "cli/commands.h"
#include "measure/roof.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/machine.h"
#include "strobe/registry.h"
#include "verify/buffer.h"

namespace strobe::cli {
namespace {

void show_machine() {
  const Machine here = machine();
  const lab::Roof roof = lab::measure_roof();
  const auto line = [](const char* what, const std::string& value) {
    fmt::print("{:<16} {}\n", what, value);
  };
  line("Strobe", version());
  line("CPU", fmt::format("{} ({})", here.cpu, here.architecture));
  line("Cores",
       fmt::format("{} available; STROBE_THREADS=N or --threads N uses fewer", here.cores));
  line("Memory", fmt::format("{}, {} free", lab::bytes_text(here.memory_bytes),
                             lab::bytes_text(lab::available_memory())));
  line("CPU kernels", fmt::format("{} (in use: {}; STROBE_CPU_ISA=NAME forces another)",
                                  fmt::join(here.isas, ", "), here.isa));
  line("FMA rate, fp32", fmt::format("{:.1f} GFLOP/s measured, {} threads",
                                     roof.flops_per_second / 1e9, roof.threads));
  line("GPU", "none used: this build has no CUDA backend");
}

void show_implementations() {
  lab::Table table({{"Implementation"}, {"Device"}, {"What it is"}});
  for (const Implementation* implementation : Registry::instance().all()) {
    table.add_row({std::string(implementation->name()),
                   to_string({.kind = implementation->device()}),
                   std::string(implementation->summary())});
  }
  fmt::print("\n{}", table.render());
}

}  // namespace

int info() {
  show_machine();
  show_implementations();
  return kDone;
}

}  // namespace strobe::cli
