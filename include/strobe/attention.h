#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "strobe/export.h"
#include "strobe/implementation.h"

namespace strobe {

struct AttentionOptions {
  std::string implementation{};  ///< by name; empty picks the best of the device
  Device device{};               ///< where the tensors are; its index is that of a GPU
  int threads = 0;               ///< as in PlanOptions
  bool deterministic = false;    ///< likewise
};

/// A planned attention with its workspace: the friendly way in. Plan once, call often.
///
///     strobe::Attention attention({.batch = 1, .seqlen_q = 128, .heads = 8, .dim = 64});
///     attention({.q = q, .k = k, .v = v, .out = out});
///
/// One object serves one call at a time.
class STROBE_API Attention {
 public:
  explicit Attention(const Problem& problem, const AttentionOptions& options = {});

  void operator()(const Tensors& tensors, Stream stream = nullptr);

  const Plan& plan() const { return plan_; }
  const Implementation& implementation() const { return *implementation_; }

 private:
  const Implementation* implementation_;
  Plan plan_;
  std::shared_ptr<std::byte> workspace_;  ///< in the memory of the implementation's device
};

/// Both passes of a training step, planned together: one workspace serves both, and the forward
/// pass leaves what the backward pass needs.
///
///     strobe::TrainingAttention attention({.batch = 1, .seqlen_q = 128, .heads = 8, .dim = 64});
///     attention.forward({.q = q, .k = k, .v = v, .out = out});
///     attention.backward({.q = q, .k = k, .v = v, .out = out, .dout = dout,
///                         .dq = dq, .dk = dk, .dv = dv});
///
/// On a GPU both may be captured in one graph, even at their first call: neither allocates or waits
/// for the GPU, and kernels that are loaded only then are no part of the graph. One object serves
/// one step at a time.
class STROBE_API TrainingAttention {
 public:
  /// The best is that of the backward pass, which takes the most time. The problem's own pass does
  /// not matter.
  explicit TrainingAttention(const Problem& problem, const AttentionOptions& options = {});

  /// Keeps the LSE, unless it is given a place.
  void forward(const Tensors& tensors, Stream stream = nullptr);
  /// With the operands and the output of the forward pass before, and its LSE if that was given a
  /// place.
  void backward(const Tensors& tensors, Stream stream = nullptr);

  const Plan& forward_plan() const { return forward_; }
  const Plan& backward_plan() const { return backward_; }
  /// Of both passes together, LSE not included.
  std::size_t workspace_bytes() const;
  const Implementation& implementation() const { return *implementation_; }

 private:
  void run(const Plan& plan, Tensors tensors, Stream stream);
  /// Of a call with these queries, of which there may be fewer than were planned for.
  TensorView kept_lse(const TensorView& q) const;

  const Implementation* implementation_;
  Plan forward_;
  Plan backward_;
  std::shared_ptr<std::byte> workspace_;  ///< in the memory of the implementation's device
  std::shared_ptr<std::byte> lse_;        ///< likewise
};

}  // namespace strobe
