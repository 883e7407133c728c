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
    for (shape.query_slots = 2; shape.query_slots <= kMostSlots; ++shape.query_slots) {
      for (shape.slice_slots = 0; shape.slice_slots <= kMostSlots; ++shape.slice_slots) {
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
  const HopperBackwardShape otherwise;
  const auto tile =
      TileText::parse(text, {.first = otherwise.query_slots, .second = otherwise.slice_slots});
  if (!tile) return std::nullopt;
  const HopperBackwardConfig usual = choose_hopper_backward(features);
  if (tile->text() == variant_text(usual.shape)) return usual;
  for (const HopperBackwardShape& shape : worth_trying(features)) {
    if (variant_text(shape) == tile->text()) return HopperBackwardConfig{features, shape};
  }
  return std::nullopt;
}

}  // namespace strobe::cuda::hopper_backward
