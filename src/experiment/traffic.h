#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strobe/implementation.h"

// Bytes that attention moves between memory and what computes: by a model, and by counters.
namespace strobe::lab {

struct Traffic {
  double read = 0, written = 0;

  double total() const { return read + written; }
};

/// What one step of the unfused computation moves.
struct PhaseTraffic {
  std::string phase{};
  Traffic bytes{};
};

/// The forward pass unfused: scores, softmax and the sum of values each read whole matrices and
/// write one, none of which a cache is thought to hold.
std::vector<PhaseTraffic> unfused_traffic(const Problem& problem);

Traffic total_of(const std::vector<PhaseTraffic>& phases);

/// The forward pass by flash attention: queries and output once, keys and values once for every
/// `query_rows` queries of each head. With all queries at once that is the least there can be.
Traffic flash_traffic(const Problem& problem, std::int64_t query_rows);

/// Queries that a plan of flash attention keeps while keys pass by; 0 if it does not tell.
std::int64_t query_rows_of(const TuningRecord& tuning);

/// What a call really moved, or a sentence that says why nobody counted.
struct MeasuredTraffic {
  std::optional<double> bytes{};
  std::string by{};  ///< "cache misses, 64 bytes each", or why there are none
};

/// By the counters that the device has: those of the CPU count lines that missed its caches, which
/// tells of operands only if they are large; those of a GPU the bytes of its DRAM, in a call that
/// finds its caches cold.
MeasuredTraffic measure_traffic(const Implementation& implementation, const Problem& problem,
                                const PlanOptions& options);

}  // namespace strobe::lab
