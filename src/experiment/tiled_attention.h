#pragma once

#include <cstdint>

#include "experiment/traffic.h"

// The accesses of both algorithms, tile by tile, as a cache sees them: one head, forward, fp32.
namespace strobe::lab {

struct TiledAttention {
  std::int64_t length = 0, dim = 0;
  std::int64_t tile = 0;  ///< queries, and keys, of a block

  /// With the largest tile for which a block of queries, keys, values, output and scores takes at
  /// most three quarters of the memory: as much again as a tile of keys must find room while the
  /// last one is still there.
  static TiledAttention fitting(std::int64_t length, std::int64_t dim, std::int64_t memory_bytes);

  /// What the theory says: everything once, and keys (and values) again for every block of queries.
  Traffic predicted_flash() const;
  /// Likewise, with scores and weights written and read between the steps.
  Traffic predicted_unfused() const;

  /// What a cache of so many bytes sees of it.
  Traffic simulated_flash(std::int64_t memory_bytes) const;
  Traffic simulated_unfused(std::int64_t memory_bytes) const;

 private:
  double matrix_bytes() const;  ///< of queries, keys, values or output
  double score_bytes() const;
  std::int64_t blocks() const { return (length + tile - 1) / tile; }
};

}  // namespace strobe::lab
