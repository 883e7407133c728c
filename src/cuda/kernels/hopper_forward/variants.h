#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/kernels/hopper_forward/config.h"

// The ways to cut a problem that `strobe tune` tries.
namespace strobe::cuda::hopper_forward {

inline constexpr std::string_view kVariantForm =
    "QUERIESxKEYS/QUERY_SLOTS/STAGES that fits into shared memory, with 128, 192 or 256 queries, a "
    "multiple of 16 up to 256 keys, 1 or 2 slots and 1 to 8 stages, such as 128x128/2/2";

/// "192x128/2/2". How tiles are handed out is no part of it: that follows from the work.
std::string variant_text(const HopperForwardShape& shape);

/// Nothing for what is no variant, or does not fit.
std::optional<HopperForwardConfig> parse_variant(std::string_view text,
                                                 const HopperForwardFeatures& features,
                                                 const Work& work);

/// Those worth trying, without the one that is usual.
std::vector<HopperForwardShape> worth_trying(const HopperForwardFeatures& features);

}  // namespace strobe::cuda::hopper_forward
