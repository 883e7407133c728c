#pragma once

namespace strobe::cuda {

/// What the weights of a row are relative to while keys arrive block by block.
enum class Reference {
  running,  ///< the largest logit so far, or nearly: see OnlineSoftmax
  fixed,    ///< the largest of the first blocks, and a new one only if a weight grows too large
};

}  // namespace strobe::cuda
