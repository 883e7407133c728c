#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/flops.h"
#include "measure/product_trial.h"
#include "measure/sampler.h"
#include "strobe/implementation.h"
#include "verify/operands.h"
#include "verify/spot_check.h"
#include "verify/verify.h"

namespace strobe::lab {

/// Bytes that a pass needs.
struct Memory {
  std::int64_t inputs = 0, outputs = 0;
  std::int64_t workspace = 0;              ///< what the plan asked for
  std::optional<std::int64_t> resident{};  ///< what planning and the first run really took

  /// Inputs, outputs, and what was planned or, if that is more, taken.
  std::int64_t peak() const;
};

/// One implementation timed on one pass of one problem.
struct Benchmark {
  std::string implementation{};
  Device device{};
  PlanOptions options{};
  Problem problem{};  ///< with the pass that was timed
  Status status = Status::ok;
  std::string reason{};  ///< why it is not ok
  TuningRecord tuning{};
  SamplingPolicy policy{};
  int copies = 1;          ///< of the operands, that the runs took turns on
  std::size_t rivals = 0;  ///< others that took turns with it, the product among them
  std::optional<ProductResult> product{};
  Measurement measurement{};
  double flops = 0;
  Memory memory{};
  Accuracy accuracy{};

  Cache cache() const { return policy.cache_on(device.kind); }
  bool timed() const { return !measurement.samples_ms.empty(); }
  /// Whether the time may be held against others': what failed its check has one too.
  bool may_win() const { return timed() && status == Status::ok; }
  double flops_per_second(double ms) const { return ms > 0 ? flops / ms * 1e3 : 0; }
};

/// The result where there was no memory for the operands.
Benchmark without_operands(const Implementation& implementation, const Problem& problem,
                           const PlanOptions& options, const OutOfMemory& error);

/// Who is timed, and how it is to compute.
struct Entrant {
  const Implementation* implementation = nullptr;
  PlanOptions options{};
};

/// Times the entrants in turns on the same operands (for backward after forward passes of
/// their own, which are not timed) and, given a check, judges what each computed. A run that leaves
/// an output unwritten or goes on writing after it has returned, an error of the device, a missing
/// feature and too little memory are results with a status, not exceptions. If there is a product,
/// it takes turns with them.
std::vector<Benchmark> benchmark(std::span<const Entrant> entrants, Operands& operands, Pass pass,
                                 const SpotCheck* check, const SamplingPolicy& policy,
                                 const ProductTrial* product = nullptr);

/// The same, with one way for all.
std::vector<Benchmark> benchmark(std::span<const Implementation* const> implementations,
                                 Operands& operands, Pass pass, const SpotCheck* check,
                                 const PlanOptions& options, const SamplingPolicy& policy);

}  // namespace strobe::lab
