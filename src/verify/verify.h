#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/implementation.h"
#include "verify/case.h"
#include "verify/rule.h"

namespace strobe::lab {

enum class Status : std::uint8_t { ok, failed, unsupported, out_of_memory };

/// "ok", "failed", "unsupported", "out-of-memory": as in records.
std::string_view name_of(Status status);

struct TensorReport {
  std::string_view tensor;  ///< "out", "dq", ...
  std::string_view label;   ///< "Output", "dQ", ...
  Comparison comparison{};
  std::string worst_index{};  ///< "[0, 12, 3, 5]"
};

/// What verifying one implementation on one case found.
struct Report {
  std::string implementation{};
  Device device{};
  PlanOptions options{};
  Status status = Status::ok;
  std::string reason{};  ///< why it is not ok, one sentence
  std::vector<TensorReport> tensors{};
  TuningRecord tuning{};
  std::size_t workspace_bytes = 0;
};

/// The unfused computation whose error sets the bounds.
inline constexpr std::string_view kBaselineName = "standard";

/// Runs the case with every implementation and holds each against the oracle by the rule. An
/// implementation's backward pass is given its own forward pass's output and LSE, and both are
/// checked. Each must also give the same bits twice, leave its inputs alone and write nothing
/// beside its outputs and its workspace. The oracle and the baseline run once for all. Where TF32
/// is allowed, the bounds of fp32 on GPUs are those that the baseline has in fp16.
std::vector<Report> verify(const Case& what, std::span<const Implementation* const> implementations,
                           const PlanOptions& options = {});

Report verify(const Case& what, const Implementation& implementation);

}  // namespace strobe::lab
