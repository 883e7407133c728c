#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "strobe/export.h"
#include "strobe/implementation.h"

namespace strobe {

struct AttentionOptions {
  std::string implementation{};             ///< by name; empty picks the best
  Device::Kind device = Device::Kind::cpu;  ///< where to look for the best
  int threads = 0;                          ///< as in PlanOptions
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

}  // namespace strobe
