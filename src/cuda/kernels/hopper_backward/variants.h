#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/kernels/hopper_backward/config.h"

// The ways to cut a problem that `strobe tune` tries.
namespace strobe::cuda::hopper_backward {

inline constexpr std::string_view kVariantForm =
    "QUERIESxKEYS/QUERY_SLOTS/SLICES that fits into shared memory, with a tile that the kernel has "
    "for the dim, 2 or 3 slots and 0 to 3 slices (0 for thread blocks in pairs), such as 64x64/2/1";

/// "64x128/3/1"
std::string variant_text(const HopperBackwardShape& shape);

/// Nothing for what is no variant, or does not fit.
std::optional<HopperBackwardConfig> parse_variant(std::string_view text,
                                                  const HopperBackwardFeatures& features);

/// All there are: the tiles of the candidates with every number of slots that fits.
std::vector<HopperBackwardShape> worth_trying(const HopperBackwardFeatures& features);

}  // namespace strobe::cuda::hopper_backward
