#pragma once
// Read by the host's compiler as well.

namespace strobe::cuda {

/// Heads of 16-bit elements that follow each other, of which the first begins at a unit of so many
/// elements: after how many of them one does so again, if until then each begins further on in its
/// unit. Boxes are then told which of the period it is, and end where its last one does. 0 if
/// heads are not so; then all are columns of one, and boxes bring whatever follows.
constexpr int head_period(int dim, int unit = 8) {
  const int step = dim % unit;
  if (step == 0) return 1;
  return unit % step == 0 && dim > step ? unit / step : 0;
}

}  // namespace strobe::cuda
