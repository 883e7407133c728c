#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/setting.h"

namespace strobe::lab {

/// A setting with the values that it takes in turn.
struct Axis {
  std::string setting{};              ///< its name, "seqlen"
  std::vector<std::string> values{};  ///< plain ones, or relations such as "tokens/16384"

  bool operator==(const Axis&) const = default;
};

/// Reads a list with commas, duplicates left out. An item is
///   - a plain value: 64, bf16, 128:0;
///   - for a size, a range with both ends in: 512:16384:*2 (times 2) or 256:1024:+256 (plus 256);
///   - for a size, a relation to another setting: tokens/16384 (--batch: 16384 divided by seqlen),
///     hidden/2048 (--nheads: 2048 divided by headdim), nheads/4 (--kv-heads: a quarter of nheads);
///   - both (--causal: no and yes). An empty list is yes for --causal, as the bare option.
/// Throws InvalidArgument naming the option, the item and what is allowed.
Axis read_axis(const Setting& setting, const std::string& list);

/// `values` with every relation worked out; a setting that is not among them has its default.
/// Throws InvalidArgument naming the option where a division leaves a remainder.
SettingValues resolve(const SettingValues& values);

/// The axis of the same workload with sequences `by` times shorter: lengths, and tokens in all,
/// are divided, other axes are left as they are. Throws InvalidArgument if there is a remainder.
Axis shortened(Axis axis, std::int64_t by);

}  // namespace strobe::lab
