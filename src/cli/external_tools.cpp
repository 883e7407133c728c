#include "cli/external_tools.h"

#include "report/programs.h"

namespace strobe::cli {

std::vector<lab::ExternalTool> external_tools() {
  return {
      {.name = "nsys",
       .adds = "the time line of the driver and of every kernel on the GPU "
               "(flash_attn_nsys.nsys-rep, nsys_stats.txt)",
       .path = lab::find_program("nsys")},
      {.name = "ncu",
       .adds = "a GPU's own counters: DRAM and L2 traffic, busy SMs and tensor cores, occupancy "
               "and stalls (flash_attn_ncu_full.ncu-rep, ncu_memory_metrics.txt, "
               "ncu_compute_metrics.txt)",
       .path = lab::find_program("ncu")}};
}

}  // namespace strobe::cli
