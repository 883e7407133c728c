#pragma once

#include <cstdint>

#include "strobe/problem.h"

namespace strobe::lab {

/// (query, key) pairs that the mask lets see each other, over the batch, for one head.
double visible_pairs(const Problem& problem);

/// Floating-point operations of the problem's pass, counted exactly for its mask: forward
/// 2 (dim + dim_v) for each visible pair and head, backward 2.5 times that (five matrix products
/// instead of two). Softmax and masks do not count, as everywhere in this field.
double flops(const Problem& problem);

/// Bytes that the operands of the problem's pass take.
struct Footprint {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

Footprint footprint(const Problem& problem);

}  // namespace strobe::lab
