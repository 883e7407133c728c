#pragma once

#include <cstdint>
#include <numeric>

#include "experiment/experiment.h"

// Head dims whose rows end in the middle of what a load brings: 128 against 129, and those around.
namespace strobe::lab {

/// One head dim.
struct AlignmentRow {
  Benchmark result{};
  std::int64_t dim = 0;
  std::int64_t padded = 0;  ///< what the plan says that rows are padded to; 0 if it says nothing

  double ms() const { return result.measurement.ms.median; }
  double tflops() const { return result.flops_per_second(ms()) / 1e12; }
  std::int64_t row_bytes() const {
    return dim * static_cast<std::int64_t>(size_of(result.problem.dtype));
  }
  /// The widest load, of 16 bytes at most, that begins at a multiple of itself in every row.
  std::int64_t load_bytes() const { return std::gcd(row_bytes(), std::int64_t{16}); }
};

// The rules: an odd dim beside the whole one before it, and the whole one after it.
Expectation small_drop(const AlignmentRow& whole, const AlignmentRow& odd);
Expectation as_dear_as_the_next(const AlignmentRow& odd, const AlignmentRow& next);

}  // namespace strobe::lab
