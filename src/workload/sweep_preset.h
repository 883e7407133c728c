#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "workload/sweep.h"

namespace strobe::lab {

/// How the results of a sweep are laid out.
enum class TableForm : std::uint8_t {
  list,        ///< a row for every point
  throughput,  ///< batch_size, seq_len, ..., fwd_only: a row for forward and for both passes
  grid         ///< a row for head dimension and length, a column for pass and implementation
};

/// A sweep that people know by a name.
struct SweepPreset {
  std::string_view name;
  std::string_view help;
  TableForm form = TableForm::list;
  std::vector<Grid> grids{};
};

std::span<const SweepPreset> sweep_presets();

/// Throws InvalidArgument listing the names there are.
const SweepPreset& find_sweep_preset(std::string_view name);

}  // namespace strobe::lab
