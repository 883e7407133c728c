#pragma once

namespace strobe::cuda {

/// Where the heads of a tensor lie in its rows, counted in elements from a multiple of 16 bytes on:
/// for heads that may begin within a chunk, see HeadColumns. Read by the host's compiler as well.
struct HeadPlace {
  int first;   ///< of the first head
  int stride;  ///< from one to the next
};

}  // namespace strobe::cuda
