#pragma once
// Read by the host's compiler as well.

namespace strobe::cuda {

/// How the output leaves.
enum class OutputWay {
  by_queries,      ///< by way of the slot of its queries, which the next ones get later for it
  by_slot,         ///< by way of a slot of its own
  from_registers,  ///< without any
};

}  // namespace strobe::cuda
