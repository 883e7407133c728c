#include "verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "strobe/error.h"
#include "strobe/oracle.h"
#include "strobe/registry.h"
#include "verify/execution.h"
#include "verify/operands.h"
#include "verify/outputs.h"
#include "verify/rows.h"

namespace strobe::lab {
namespace {

/// Every output of a run, its elements packed densely, in the order of kOutputs; what the case
/// does not have is empty.
using Snapshot = std::array<std::vector<std::byte>, kOutputs.size()>;

/// A run that broke a promise other than accuracy.
class Misbehaviour : public Error {
 public:
  using Error::Error;
};

/// What both passes of the case leave; the LSE is not asked of those that give none.
Tensors outputs_of(const Implementation& implementation, const Operands& operands) {
  Tensors views = operands.tensors(operands.problem().pass);
  if (!implementation.habits().gives_lse) views.lse = {};
  return views;
}

/// Runs one implementation on the operands, whole passes at a time.
class Runner {
 public:
  Runner(const Implementation& implementation, Operands& operands, const PlanOptions& options)
      : implementation_(implementation), operands_(operands), options_(options) {}

  /// Forward, then backward if the case asks for it, from poisoned memory.
  Snapshot run() {
    operands_.poison_outputs(Pass::forward);
    operands_.poison_outputs(Pass::backward);
    run_pass(Pass::forward);
    if (operands_.problem().pass == Pass::backward) run_pass(Pass::backward);
    Snapshot snapshot;
    const Tensors views = outputs_of(implementation_, operands_);
    for (std::size_t i = 0; i < kOutputs.size(); ++i) {
      const TensorView& view = views.*kOutputs[i].view;
      if (view.given()) snapshot[i] = packed_bytes(view);
    }
    return snapshot;
  }

  /// The plan of the case's own pass.
  const Plan& plan() const { return plan_; }

 private:
  void run_pass(Pass pass) {
    const auto execution = Execution::make(implementation_, operands_, pass, options_);
    execution->run();
    execution->fetch();
    if (!execution->workspace_intact()) {
      throw Misbehaviour(fmt::format("writes outside of its workspace of {} bytes ({})",
                                     execution->plan().workspace_bytes, name_of(pass)));
    }
    plan_ = execution->plan();
  }

  const Implementation& implementation_;
  Operands& operands_;
  PlanOptions options_;
  Plan plan_;
};

/// What the implementations of one case are held against, in the order of kOutputs.
struct Truth {
  OracleResult oracle{};
  std::array<std::vector<double>, kOutputs.size()> baseline{};
  std::array<ErrorLevel, kOutputs.size()> baseline_elsewhere{};
  bool looked_elsewhere = false;
  DType precision = DType::fp32;  ///< of sums of products; fp16 stands for TF32

  /// Takes the baseline's error on another case into account.
  void add(const Case& other);
};

Truth ask_oracle_and_baseline(Operands& operands) {
  const Problem& problem = operands.problem();
  const Tensors views = operands.tensors(problem.pass);
  Truth truth{.oracle = oracle(problem, views)};
  Runner baseline(Registry::instance().find(kBaselineName), operands, {});
  const Snapshot snapshot = baseline.run();
  for (std::size_t i = 0; i < kOutputs.size(); ++i) {
    truth.baseline[i] = to_doubles(snapshot[i], (views.*kOutputs[i].view).dtype);
  }
  return truth;
}

void Truth::add(const Case& other) {
  Operands operands(other);
  const Truth there = ask_oracle_and_baseline(operands);
  for (std::size_t i = 0; i < kOutputs.size(); ++i) {
    if (there.baseline[i].empty()) continue;
    const ErrorLevel level = error_level(there.baseline[i], there.oracle.*kOutputs[i].truth);
    ErrorLevel& highest = baseline_elsewhere[i];
    highest = {std::max(highest.max, level.max), std::max(highest.mean, level.mean)};
  }
}

/// TF32 keeps as many bits of a factor as fp16 does: what the unfused computation gets wrong in
/// fp16 is what it would get wrong in TF32.
void allow_tf32(const Case& what, Truth& truth) {
  Case other = what;
  other.problem.dtype = truth.precision = DType::fp16;
  truth.add(other);
}

/// Takes the baseline's error from further draws of the inputs, before a failure is believed. The
/// largest error of one draw is a lottery, and the errors of a row go together through the rounding
/// of its maximum and its sum: twice or three times a lucky draw is no bound. An implementation
/// that is really worse fails here all the same, for the draws differ by little. Problems so large
/// that this would take minutes have rows enough to do without.
void look_elsewhere(const Case& what, Truth& truth) {
  constexpr int kDraws = 16;
  constexpr std::int64_t kLargeWork = 1 << 26;
  const Problem& problem = what.problem;
  truth.looked_elsewhere = true;
  if (problem.total_q() * problem.heads * problem.keys() * problem.dim > kLargeWork) return;
  Case other = what;
  for (int draw = 0; draw < kDraws; ++draw) {
    other.inputs.seed += std::uint64_t{1} << 32;  // beyond any seed that people choose
    truth.add(other);
  }
}

/// Room for what fp32 rounding does where the baseline is no measure of it. A dot product of n
/// terms rounds n partial sums of about its own size.
/// - lse is a logit where a row sees one key; large inputs make that 1e-5 wrong by itself.
/// - dsinks is one number per head, the sum of a dot product per row: the baseline's error is a
///   handful of draws and may be small by luck.
double room_for(std::string_view tensor, const Case& what, DType precision) {
  const Problem& problem = what.problem;
  const auto root = [](std::int64_t n) { return std::sqrt(static_cast<double>(n)); };
  if (tensor == "lse") {
    const double dot = root(problem.dim) * what.inputs.scale * what.inputs.scale;
    return root(problem.dim) * half_ulp(precision, dot) * std::fabs(problem.softmax_scale());
  }
  if (tensor == "dsinks") {
    const double dot = root(problem.value_dim()) * what.inputs.scale;
    return 2 * root(problem.total_q()) * half_ulp(precision, dot);  // dp and the sum over keys
  }
  return 0;
}

TensorReport judge(std::size_t output, const Operands& operands, const Snapshot& ours,
                   const Truth& truth) {
  const OutputField& field = kOutputs[output];
  const Case& what = operands.what();
  const TensorView view = operands.tensors(what.problem.pass).*field.view;
  const std::vector<double>& expected = truth.oracle.*field.truth;
  const std::vector<double> values = to_doubles(ours[output], view.dtype);
  const RuleOptions options{
      .dtype = what.problem.dtype,
      .gradient = field.pass == Pass::backward,
      .room = room_for(field.name, what, truth.precision),
      .elsewhere = truth.baseline_elsewhere[output],
      .index_text = [&view](std::int64_t element) { return index_text(view, element); }};
  TensorReport report{.tensor = field.name, .label = field.label};
  report.comparison = field.name == "lse"
                          ? compare_lse(values, expected, options)
                          : compare({values, truth.baseline[output], expected}, options);
  if (report.comparison.worst >= 0) report.worst_index = index_text(view, report.comparison.worst);
  return report;
}

void require_same_bits(const Snapshot& first, const Snapshot& second, const Plan& plan) {
  for (std::size_t i = 0; i < kOutputs.size(); ++i) {
    if (kOutputs[i].pass == plan.problem.pass && !plan.deterministic) continue;
    if (first[i] != second[i]) {
      throw Misbehaviour(fmt::format("gives a different {} when it runs again", kOutputs[i].name));
    }
  }
}

/// Runs twice and checks all promises; the accuracy is the caller's to judge.
Snapshot run_checked(Runner& runner, Operands& operands) {
  const std::uint64_t fingerprint = operands.inputs_fingerprint();
  Snapshot first = runner.run();
  if (operands.inputs_fingerprint() != fingerprint) throw Misbehaviour("changes its inputs");
  const std::string damaged = operands.damaged_surroundings();
  if (!damaged.empty()) throw Misbehaviour(fmt::format("writes outside of {}", damaged));
  require_same_bits(first, runner.run(), runner.plan());
  return first;
}

/// Judges every output that the case has, and the whole by the first that fails.
void judge_all(const Operands& operands, const Tensors& outputs, const Snapshot& ours,
               const Truth& truth, Report& report) {
  report.status = Status::ok;
  report.reason.clear();
  report.tensors.clear();
  for (std::size_t i = 0; i < kOutputs.size(); ++i) {
    if (!(outputs.*kOutputs[i].view).given()) continue;
    report.tensors.push_back(judge(i, operands, ours, truth));
    const TensorReport& last = report.tensors.back();
    if (!last.comparison.pass() && report.status == Status::ok) {
      report.status = Status::failed;
      report.reason = fmt::format("{}: {}", last.tensor, last.comparison.reason);
    }
  }
}

Report report_of(const Implementation& implementation, const PlanOptions& options,
                 Status status = Status::ok, const std::string& reason = "") {
  return {.implementation = full_name(implementation),
          .device = device_of(implementation, options),
          .options = options,
          .status = status,
          .reason = reason};
}

Report verify_one(const Implementation& implementation, Operands& operands,
                  const PlanOptions& options, Truth& truth) {
  Report report = report_of(implementation, options);
  Runner runner(implementation, operands, options);
  const Snapshot ours = run_checked(runner, operands);
  report.tuning = runner.plan().tuning;
  report.workspace_bytes = runner.plan().workspace_bytes;
  const Tensors outputs = outputs_of(implementation, operands);
  judge_all(operands, outputs, ours, truth, report);
  if (report.status == Status::failed && !truth.looked_elsewhere) {
    look_elsewhere(operands.what(), truth);
    judge_all(operands, outputs, ours, truth, report);
  }
  return report;
}

/// A missing feature, missing memory or a broken promise is a finding, not the end of the work.
Report verify_or_explain(const Implementation& implementation, Operands& operands,
                         const PlanOptions& options, Truth& truth) {
  try {
    return verify_one(implementation, operands, options, truth);
  } catch (const Unsupported& error) {
    return report_of(implementation, options, Status::unsupported, error.what());
  } catch (const OutOfMemory& error) {
    return report_of(implementation, options, Status::out_of_memory, error.what());
  } catch (const Error& error) {
    return report_of(implementation, options, Status::failed, error.what());
  }
}

}  // namespace

std::string_view name_of(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::failed:
      return "failed";
    case Status::unsupported:
      return "unsupported";
    case Status::out_of_memory:
      return "out-of-memory";
  }
  return "unknown";
}

std::vector<Report> verify(const Case& what, std::span<const Implementation* const> implementations,
                           const PlanOptions& options) {
  Operands operands(what);
  Truth truth = ask_oracle_and_baseline(operands);
  std::optional<Truth> tf32{};
  if (options.tf32 && what.problem.dtype == DType::fp32) {
    tf32 = truth;
    allow_tf32(what, *tf32);
  }
  std::vector<Report> reports;
  for (const Implementation* implementation : implementations) {
    const bool rounds = tf32 && implementation->device() != Device::Kind::cpu;
    reports.push_back(
        verify_or_explain(*implementation, operands, options, rounds ? *tf32 : truth));
  }
  return reports;
}

Report verify(const Case& what, const Implementation& implementation) {
  const Implementation* one = &implementation;
  return verify(what, std::span(&one, 1)).front();
}

}  // namespace strobe::lab
