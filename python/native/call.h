#pragma once

#include "arrays.h"
#include "plans.h"
#include "settings.h"
#include "strobe/implementation.h"

namespace strobe::python {

/// One call from Python: arrays and settings by name, and the library that the arrays are of.
class Call {
 public:
  Call(nb::handle library, const nb::dict& arrays, const nb::dict& settings, Pass pass);

  /// (out, lse), the latter None unless it was asked for.
  nb::tuple forward();

  /// (dq, dk, dv, dbias, dsinks), the last two None unless they were asked for.
  nb::tuple backward();

  /// Seconds that each of so many forward passes on the CPU takes with no Python around it.
  double time_alone(int calls);

  const PlanKey& key() const { return key_; }

 private:
  /// A new array of that shape, as a view; `fp32`, or of the dtype of q.
  nb::object result(const char* name, TensorView& view, const std::vector<std::int64_t>& shape,
                    bool fp32);
  nb::object result_like(const char* name, TensorView& view, const TensorView& like);
  void run();
  void run_on_gpu(const Planned& planned);

  Library library_;
  Views views_;
  Tensors tensors_{};
  Settings settings_;
  PlanKey key_{};
};

}  // namespace strobe::python
