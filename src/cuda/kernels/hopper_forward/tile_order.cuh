#pragma once
// Read by the host's compiler as well.

namespace strobe::cuda {

/// How thread blocks come by their tiles.
enum class TileOrder {
  one_by_one,      ///< all take as long: each takes every so manieth
  in_pairs,        ///< a long one and a short one in turns, see PairedTiles
  there_and_back,  ///< heads by as many blocks as they have tiles, see TilesThereAndBack
  on_demand,       ///< the longest first, and whoever is done asks for the next
};

}  // namespace strobe::cuda
