#include "cli/external_tools.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

namespace strobe::cli {
namespace {

std::string on_the_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::filesystem::path file = std::filesystem::path(folder) / program;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

}  // namespace

std::vector<lab::ExternalTool> external_tools() {
  return {
      {.name = "nsys",
       .adds = "the time line of the driver and of every kernel on the GPU "
               "(flash_attn_nsys.nsys-rep, nsys_stats.txt)",
       .path = on_the_path("nsys")},
      {.name = "ncu",
       .adds = "a GPU's own counters: DRAM and L2 traffic, busy SMs and tensor cores, occupancy "
               "and stalls (flash_attn_ncu_full.ncu-rep, ncu_memory_metrics.txt, "
               "ncu_compute_metrics.txt)",
       .path = on_the_path("ncu")}};
}

}  // namespace strobe::cli
