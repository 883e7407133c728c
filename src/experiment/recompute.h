#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "experiment/experiment.h"
#include "strobe/device_profile.h"

// The backward pass with weights that the forward pass kept, against weights that are computed
// again: as a whole matrix, or tile by tile.
namespace strobe::lab {

/// One way to come by the weights.
struct RecomputeWay {
  std::string name{};
  double ms = 0;
  std::int64_t peak = 0;  ///< bytes while the backward pass runs
  std::int64_t kept = 0;  ///< bytes between the passes, beside the operands
};

/// Of the time of an unfused backward pass, the part in which it computes the weights again; with
/// kept weights it would not be there.
struct RecomputedPart {
  double part = 0;
  std::string by{};
};

/// The same from the kernels of unfused backward passes on a GPU: that of the softmax, and the
/// product before it. Nothing if they are not among them.
std::optional<double> recomputed_by_kernels(const DeviceActivity& seen);

// The rules.
Expectation tiles_are_faster(const RecomputeWay& kept, const RecomputeWay& tiles);
Expectation little_is_kept(const RecomputeWay& kept, const RecomputeWay& tiles);
Expectation work_is_small(const RecomputedPart& again);

}  // namespace strobe::lab
