#pragma once

#include <span>
#include <string_view>

#include "strobe/dtype.h"

namespace strobe::lab {

/// In which order the terms of a sum are added.
enum class SumOrder : unsigned char {
  sequential,  ///< one after the other
  blocked,     ///< blocks of 128 terms, each from zero, then the blocks one after the other
  pairwise,    ///< halves, and halves of halves
  kahan        ///< one after the other, what rounding took being given back with the next
};

inline constexpr SumOrder kSumOrders[] = {SumOrder::sequential, SumOrder::blocked,
                                          SumOrder::pairwise, SumOrder::kahan};

std::string_view name_of(SumOrder order);

/// The sum with every intermediate result rounded to the type, as an accumulator of that type has
/// it.
float sum_in(DType accumulator, SumOrder order, std::span<const float> terms);

}  // namespace strobe::lab
