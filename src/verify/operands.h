#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "strobe/implementation.h"
#include "verify/case.h"
#include "verify/placement.h"

namespace strobe::lab {

/// Owns every tensor of a case. Inputs are drawn from a counter-based generator; everything else,
/// outputs, padding and the memory around them, holds poison.
class Operands {
 public:
  /// Throws InvalidArgument for a wrong case and OutOfMemory if it does not fit.
  explicit Operands(const Case& what);

  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  const Case& what() const { return what_; }
  const Problem& problem() const { return what_.problem; }

  /// The views that a run of this pass is given; backward only if the case's problem is one.
  Tensors tensors(Pass pass) const;

  /// The memory of the inputs, and of what a run of this pass writes.
  std::span<const Allocation> inputs() const { return inputs_; }
  std::span<const Allocation> outputs(Pass pass) const {
    return pass == Pass::forward ? results_ : gradients_;
  }

  /// Poisons what a run of this pass writes.
  void poison_outputs(Pass pass);

  /// The first output of this pass among those given to a run, with the index, that still holds
  /// poison; "" if none does.
  std::string unwritten(Pass pass, const Tensors& given) const;

  /// The name of an output of this pass that no longer holds poison everywhere; "" if all do.
  std::string written(Pass pass) const;

  /// The name of an output beside whose elements something was written, "" if there is none.
  /// Poisons all outputs on the way.
  std::string damaged_surroundings();

  /// Changes if any byte of an input, or of the padding between inputs, changes.
  std::uint64_t inputs_fingerprint() const;

 private:
  void place_inputs();
  void place_outputs();
  void fill_inputs();
  void fill_sequences();
  void fill_extras();

  Case what_;
  Tensors all_;
  std::vector<Allocation> inputs_, results_, gradients_;
};

/// "[0, 12, 3, 5]": the index of element `element` of a dense traversal of the view.
std::string index_text(const TensorView& view, std::int64_t element);

}  // namespace strobe::lab
