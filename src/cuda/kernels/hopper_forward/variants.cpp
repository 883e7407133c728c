#include "cuda/kernels/hopper_forward/variants.h"

#include "cuda/kernels/variant.h"

namespace strobe::cuda::hopper_forward {
namespace {

constexpr int kFewestWarpgroups = 2;
constexpr int kMostWarpgroups = 4;
constexpr int kMostKeys = 256;
constexpr int kMostSlots = 2;

/// The largest block of keys for which scores, weights and output leave a thread some registers for
/// everything else.
int most_keys(const HopperForwardFeatures& features, int warpgroups) {
  constexpr int kElse = 32;
  const int all = HopperForwardConfig{features, {.warpgroups = warpgroups}}.consumer_registers();
  const int left = all - value_columns(features) / 2 - kElse;
  return std::min(kMostKeys, left * 4 / 3 / 16 * 16);
}

/// Adds two stages and as many as fit, or one where two do not. Returns how many do fit.
int add_stages(const HopperForwardFeatures& features, HopperForwardShape shape,
               std::vector<HopperForwardShape>& shapes) {
  constexpr int kMostStages = 4;
  int most = 0;
  for (shape.stages = 1; shape.stages <= kMostStages && fits({features, shape}); ++shape.stages)
    most = shape.stages;
  for (shape.stages = std::min(most, 2); shape.stages > 0;
       shape.stages = shape.stages < most ? most : 0)
    shapes.push_back(shape);
  return most;
}

}  // namespace

std::string variant_text(const HopperForwardShape& shape) {
  return TileText{shape.warpgroups * 64, shape.block_keys, shape.query_slots, shape.stages}.text();
}

std::optional<HopperForwardConfig> parse_variant(std::string_view text,
                                                 const HopperForwardFeatures& features,
                                                 const Work& work) {
  constexpr int kMostStages = 8;
  const auto tile = TileText::parse(text, {.first = 2, .second = 2});
  if (!tile) return std::nullopt;
  const HopperForwardConfig usual = choose_hopper_forward(features, work);
  if (tile->text() == variant_text(usual.shape)) return usual;
  HopperForwardConfig config{features,
                             {.block_keys = tile->keys,
                              .warpgroups = tile->queries / 64,
                              .stages = tile->second,
                              .query_slots = tile->first}};
  HopperForwardShape& shape = config.shape;
  const auto within = [](int value, int least, int most) {
    return value >= least && value <= most;
  };
  const bool right =
      tile->queries % 64 == 0 && within(shape.warpgroups, kFewestWarpgroups, kMostWarpgroups) &&
      shape.block_keys % 16 == 0 && within(shape.block_keys, 16, kMostKeys) &&
      within(shape.query_slots, 1, kMostSlots) && within(shape.stages, 1, kMostStages);
  if (!right || !fits(config)) return std::nullopt;
  shape = suited(shape, features, work);
  return config;
}

// All that fit would be more than a hundred. Left out are blocks of less than half the keys that
// there are registers for, which wait twice as often; stages between two and as many as fit; and,
// where memory is plentiful, a single slot of queries, which saves nothing else.
std::vector<HopperForwardShape> worth_trying(const HopperForwardFeatures& features) {
  constexpr int kFewestKeys = 48;
  constexpr int kPlentifulStages = 3;
  std::vector<HopperForwardShape> shapes;
  for (int warpgroups = kFewestWarpgroups; warpgroups <= kMostWarpgroups; ++warpgroups) {
    const int most = most_keys(features, warpgroups);
    for (int keys = most; keys >= std::max(kFewestKeys, most / 2); keys -= 16) {
      HopperForwardShape shape{.block_keys = keys, .warpgroups = warpgroups};
      for (shape.query_slots = kMostSlots; shape.query_slots > 0; --shape.query_slots) {
        if (add_stages(features, shape, shapes) >= kPlentifulStages) break;
      }
    }
  }
  return shapes;
}

}  // namespace strobe::cuda::hopper_forward
