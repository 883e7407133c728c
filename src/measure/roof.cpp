#include "measure/roof.h"

#include <algorithm>

#include "strobe/machine.h"

namespace strobe::lab {

Roof measure_roof(int threads) {
  constexpr int kTries = 5;
  Roof roof{.threads = threads > 0 ? threads : machine().cores};
  for (int i = 0; i < kTries; ++i) {
    roof.flops_per_second = std::max(roof.flops_per_second, measure_fma_rate(roof.threads));
  }
  return roof;
}

}  // namespace strobe::lab
