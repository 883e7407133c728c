#pragma once

#include <memory>
#include <string>

#include "strobe/implementation.h"
#include "verify/operands.h"

namespace strobe::lab {

/// Where an implementation runs with these options.
Device device_of(const Implementation& implementation, const PlanOptions& options);

/// The operands as this implementation is given them.
Tensors tensors_for(const Implementation& implementation, const Operands& operands, Pass pass);

/// One pass of an implementation over a case's operands: planned, with its workspace, ready to
/// run any number of times. Where the implementation runs on a device with memory of its own, the
/// operands are mirrored there.
class Execution {
 public:
  /// On a device the operands are mirrored `copies` times, and the runs take turns on them. Throws
  /// Unsupported, or OutOfMemory if the workspace or a mirror does not fit.
  static std::unique_ptr<Execution> make(const Implementation& implementation, Operands& operands,
                                         Pass pass, const PlanOptions& options = {},
                                         int copies = 1);

  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  virtual ~Execution() = default;

  /// What the implementation computes and nothing else: what is timed. On a device it is only put
  /// on the stream.
  virtual void run() = 0;

  /// Poisons what a run writes, wherever one writes it.
  virtual void poison_outputs() = 0;

  /// Waits for the last run and brings what it left to the operands, with everything around it.
  virtual void fetch() = 0;

  /// An output, with the index, that the last run has not written; "" if none was found. On a
  /// device all elements are looked at once, then some: bringing them over takes longer than runs.
  virtual std::string unwritten() = 0;

  /// An output that no longer holds poison everywhere, "" if all do.
  virtual std::string written() = 0;

  virtual bool workspace_intact() const = 0;

  const Plan& plan() const { return plan_; }

 protected:
  Execution(const Implementation& implementation, const Operands& operands, Pass pass,
            const PlanOptions& options);

  const Implementation& implementation_;
  Pass pass_;
  Plan plan_;
};

/// A forward pass once, whose results lie in the operands then: a backward pass needs them.
void run_forward(const Implementation& implementation, Operands& operands,
                 const PlanOptions& options);

}  // namespace strobe::lab
