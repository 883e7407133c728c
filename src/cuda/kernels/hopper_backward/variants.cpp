#include "cuda/kernels/hopper_backward/variants.h"

#include <algorithm>

#include "cuda/kernels/variant.h"

namespace strobe::cuda::hopper_backward {

std::string variant_text(const HopperBackwardShape& shape) {
  return TileText{shape.block_queries, shape.block_keys() * shape.blocks_together(),
                  shape.query_slots, shape.slice_slots}
      .text();
}

std::vector<HopperBackwardShape> worth_trying(const HopperBackwardFeatures& features) {
  constexpr int kMostSlots = 3;
  std::vector<HopperBackwardShape> shapes;
  for (const Candidate& candidate : kCandidates) {
    if (!candidate.serves(features)) continue;
    HopperBackwardShape shape = candidate.shape_for(features);
    // A tile names one way to compute it, the first.
    const auto another_way = [&](const HopperBackwardShape& s) {
      return s.block_queries == shape.block_queries && s.block_keys() == shape.block_keys() &&
             s.splits_gradients != shape.splits_gradients;
    };
    if (std::any_of(shapes.begin(), shapes.end(), another_way)) continue;
    for (shape.query_slots = 2; shape.query_slots <= kMostSlots; ++shape.query_slots) {
      // Pairs add to the sums themselves.
      const int most_slices = shape.in_pairs ? 0 : kMostSlots;
      for (shape.slice_slots = 0; shape.slice_slots <= most_slices; ++shape.slice_slots) {
        const auto same = [&](const auto& s) { return variant_text(s) == variant_text(shape); };
        if (fits({features, shape}) && std::none_of(shapes.begin(), shapes.end(), same))
          shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

std::optional<HopperBackwardConfig> parse_variant(std::string_view text,
                                                  const HopperBackwardFeatures& features) {
  const HopperBackwardConfig usual = choose_hopper_backward(features);
  const auto tile =
      TileText::parse(text, {.first = usual.shape.query_slots, .second = usual.shape.slice_slots});
  if (!tile) return std::nullopt;
  if (tile->text() == variant_text(usual.shape)) return usual;
  for (const HopperBackwardShape& shape : worth_trying(features)) {
    if (variant_text(shape) == tile->text()) return HopperBackwardConfig{features, shape};
  }
  return std::nullopt;
}

}  // namespace strobe::cuda::hopper_backward
