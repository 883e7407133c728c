#pragma once

namespace strobe::lab {

/// What results are held against on this machine.
struct Roof {
  double flops_per_second = 0;  ///< 0 if it was not measured
  int threads = 0;
};

/// The fp32 FMA rate of `threads` cores (0: all of them), the best of a few tries: a busy moment
/// must not lower the roof and so flatter the results.
Roof measure_roof(int threads = 0);

}  // namespace strobe::lab
