#pragma once
// Read by the host's compiler as well.

namespace strobe::cuda {

/// How thread blocks come by their tiles.
enum class TileOrder {
  one_by_one,      ///< in turns, for all take as long
  in_pairs,        ///< a long one and a short one in turns, see PairedTiles
  there_and_back,  ///< a head's at the same time, see TilesThereAndBack
  on_demand,       ///< the longest first, and whoever is done asks for the next
};

}  // namespace strobe::cuda
