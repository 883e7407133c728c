#include "workload/sweep_preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

using List = std::pair<std::string_view, const char*>;

/// A grid from lists as they are written on the command line.
Grid grid_of(std::initializer_list<List> lists, std::vector<std::string> implementations) {
  Grid grid{.implementations = std::move(implementations)};
  const auto all = settings();
  for (const List& list : lists) {
    const auto setting = std::find_if(all.begin(), all.end(),
                                      [&](const Setting& s) { return s.name == list.first; });
    grid.axes.push_back(read_axis(*setting, list.second));
  }
  return grid;
}

std::vector<SweepPreset> make_presets() {
  // The published table was measured with q, k and v packed and a causal mask.
  const auto throughput = [](const char* batch, const char* seqlen) {
    return grid_of({{"batch", batch},
                    {"seqlen", seqlen},
                    {"nheads", "16"},
                    {"headdim", "128"},
                    {"causal", "yes"},
                    {"layout", "qkvpacked"}},
                   {"flash"});
  };
  return {{"throughput-table",
           "batches of 4k and sequences up to 64k, 16 heads of 128: iterations/s, memory, TFLOP/s",
           TableForm::throughput,
           {throughput("2,8,16,64,128", "4096"), throughput("2", "8192:65536:*2")}},
          {"attention-grid",
           "head dimensions 16 to 128 by lengths 256 to 16k: standard against flash",
           TableForm::grid,
           {grid_of({{"batch", "8"},
                     {"seqlen", "256,1024,4096,8192,16384"},
                     {"nheads", "1"},
                     {"headdim", "16,32,64,128"}},
                    {"standard", "flash"})}},
          {"paper",
           "16k tokens in sequences of 512 to 16k, hidden size 2048, head dimensions 64 to 256",
           TableForm::list,
           {grid_of({{"batch", "tokens/16384"},
                     {"seqlen", "512:16384:*2"},
                     {"nheads", "hidden/2048"},
                     {"headdim", "64,128,256"},
                     {"causal", "both"}},
                    {"flash"})}}};
}

}  // namespace

std::span<const SweepPreset> sweep_presets() {
  static const std::vector<SweepPreset> presets = make_presets();
  return presets;
}

const SweepPreset& find_sweep_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const SweepPreset& preset : sweep_presets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw InvalidArgument("--preset",
                        fmt::format("is '{}', allowed is {}", name, fmt::join(names, ", ")));
}

}  // namespace strobe::lab
