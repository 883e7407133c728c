#include "measure/benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>

#include "measure/resident.h"
#include "strobe/accelerator.h"
#include "verify/execution.h"

namespace strobe::lab {
namespace {

void reject_if_unwritten(Execution& execution) {
  const std::string output = execution.unwritten();
  if (output.empty()) return;
  throw Rejected(
      fmt::format("had not written {} when it returned, so its time means nothing", output));
}

void reject_if_written(Execution& execution) {
  const std::string output = execution.written();
  if (output.empty()) return;
  throw Rejected(fmt::format(
      "still wrote {} after it had returned, so its time means nothing: it must wait for its work",
      output));
}

/// How many copies of a result's operands it takes until, before a run is on the first again, the
/// others have filled the device's cache. What is twice as large as that drives itself out of it;
/// of what is tiny there are no more than a few dozen, and it stays warm in part.
int copies_beyond_cache(const Benchmark& result) {
  constexpr std::int64_t kMost = 64;
  const std::int64_t bytes = result.memory.inputs + result.memory.outputs;
  const std::int64_t cache = accelerator(result.device).cache_bytes();
  if (bytes <= 0 || bytes >= 2 * cache) return 1;
  return static_cast<int>(std::min(kMost, 1 + (cache + bytes - 1) / bytes));
}

/// One implementation on its way to a result. Whatever stops it is its status.
class Contender {
 public:
  Contender(const Implementation& implementation, Operands& operands, Pass pass,
            const PlanOptions& options, const SamplingPolicy& policy);

  /// Plans, takes the workspace and runs once, watching the memory.
  void start();

  bool in_the_race() const { return result_.status == Status::ok; }
  Trial trial();
  void finish(Measurement measurement, const SpotCheck* check, bool alone);

  Benchmark& result() { return result_; }

 private:
  template <class F>
  void guarded(const F& body);

  void run_forward();
  std::string why_failed() const;

  /// The baseline computes in fp32, which TF32 cannot be held to.
  bool rounds_to_tf32() const {
    return options_.tf32 && result_.problem.dtype == DType::fp32 &&
           result_.device.kind != Device::Kind::cpu;
  }

  const Implementation& implementation_;
  Operands& operands_;
  Pass pass_;
  PlanOptions options_;
  std::unique_ptr<Execution> execution_{};
  Benchmark result_{};
};

Contender::Contender(const Implementation& implementation, Operands& operands, Pass pass,
                     const PlanOptions& options, const SamplingPolicy& policy)
    : implementation_(implementation), operands_(operands), pass_(pass), options_(options) {
  result_.implementation = full_name(implementation);
  result_.device = device_of(implementation, options);
  result_.options = options;
  result_.policy = policy;
  result_.problem = operands.problem();
  result_.problem.pass = pass;
  result_.flops = flops(result_.problem);
  const Footprint bytes = footprint(result_.problem);
  result_.memory.inputs = bytes.inputs;
  result_.memory.outputs = bytes.outputs;
}

template <class F>
void Contender::guarded(const F& body) {
  const auto give_up = [this](Status status, const std::exception& error) {
    result_.status = status;
    result_.reason = error.what();
  };
  try {
    body();
  } catch (const Unsupported& error) {
    give_up(Status::unsupported, error);
  } catch (const OutOfMemory& error) {
    give_up(Status::out_of_memory, error);
  } catch (const std::bad_alloc& error) {
    give_up(Status::out_of_memory, error);
  } catch (const InvalidArgument&) {  // of whoever asked, not of the implementation
    throw;
  } catch (const Error& error) {
    give_up(Status::failed, error);
  }
}

void Contender::run_forward() {
  operands_.poison_outputs(Pass::forward);
  const auto forward = Execution::make(implementation_, operands_, Pass::forward, options_);
  forward->run();
  forward->fetch();
  reject_if_unwritten(*forward);
}

void Contender::start() {
  guarded([this] {
    if (pass_ == Pass::backward) run_forward();
    const ResidentWatch memory;
    if (result_.cache() == Cache::rotated) result_.copies = copies_beyond_cache(result_);
    execution_ = Execution::make(implementation_, operands_, pass_, options_, result_.copies);
    result_.tuning = execution_->plan().tuning;
    result_.memory.workspace = static_cast<std::int64_t>(execution_->plan().workspace_bytes);
    execution_->run();
    if (implementation_.device() == Device::Kind::cpu) result_.memory.resident = memory.growth();
  });
}

Trial Contender::trial() {
  return {.prepare = [this] { execution_->poison_outputs(); },
          .run = [this] { execution_->run(); },
          .check = [this] { reject_if_unwritten(*execution_); },
          .check_idle = [this] { reject_if_written(*execution_); },
          .stopwatch =
              result_.policy.stopwatch ? result_.policy.stopwatch : &stopwatch_of(result_.device),
          .cache = result_.cache(),
          .turns = result_.copies,
          .recordable = implementation_.habits().recordable};
}

/// The outputs hold what the last of the contenders left there: the others compute theirs again
/// before they are judged.
void Contender::finish(Measurement measurement, const SpotCheck* check, bool alone) {
  guarded([&, this] {
    result_.measurement = std::move(measurement);
    if (result_.measurement.failure) std::rethrow_exception(result_.measurement.failure);
    if (check == nullptr) return;
    if (!alone) {
      if (pass_ == Pass::backward) run_forward();
      execution_->poison_outputs();
      execution_->run();
    }
    execution_->fetch();
    result_.accuracy = check->judge();
    if (rounds_to_tf32()) result_.accuracy.verdict = Verdict::not_checked;
    if (result_.accuracy.verdict != Verdict::fail) return;
    result_.status = Status::failed;
    result_.reason = why_failed();
  });
}

std::string Contender::why_failed() const {
  const Case what{.problem = result_.problem, .inputs = operands_.what().inputs};
  const std::string command = what.command(implementation_, options_);
  if (command.empty()) return result_.accuracy.reason;
  return fmt::format("{}; `{}` checks every element", result_.accuracy.reason, command);
}

}  // namespace

std::int64_t Memory::peak() const {
  return inputs + outputs + std::max(workspace, resident.value_or(0));
}

Benchmark without_operands(const Implementation& implementation, const Problem& problem,
                           const PlanOptions& options, const OutOfMemory& error) {
  const Footprint bytes = footprint(problem);
  return {.implementation = full_name(implementation),
          .device = device_of(implementation, options),
          .options = options,
          .problem = problem,
          .status = Status::out_of_memory,
          .reason = error.what(),
          .memory = {.inputs = bytes.inputs, .outputs = bytes.outputs}};
}

std::vector<Benchmark> benchmark(std::span<const Implementation* const> implementations,
                                 Operands& operands, Pass pass, const SpotCheck* check,
                                 const PlanOptions& options, const SamplingPolicy& policy) {
  std::vector<Entrant> entrants;
  for (const Implementation* implementation : implementations)
    entrants.push_back({implementation, options});
  return benchmark(entrants, operands, pass, check, policy);
}

std::vector<Benchmark> benchmark(std::span<const Entrant> entrants, Operands& operands, Pass pass,
                                 const SpotCheck* check, const SamplingPolicy& policy,
                                 const ProductTrial* product) {
  std::vector<Contender> contenders;
  contenders.reserve(entrants.size());  // trials point into it
  for (const auto& [implementation, options] : entrants) {
    contenders.emplace_back(*implementation, operands, pass, options, policy).start();
  }
  std::vector<Contender*> racing;
  std::vector<Trial> trials;
  for (Contender& contender : contenders) {
    if (!contender.in_the_race()) continue;
    racing.push_back(&contender);
    trials.push_back(contender.trial());
  }
  if (product != nullptr && !racing.empty()) trials.push_back(product->trial(policy));
  std::vector<Measurement> measurements = sample(trials, policy);
  for (std::size_t i = 0; i < racing.size(); ++i) {
    racing[i]->finish(std::move(measurements[i]), check, racing.size() == 1);
  }
  std::optional<ProductResult> beside;
  if (trials.size() > racing.size()) beside = product->result(measurements.back());
  std::vector<Benchmark> results;
  for (Contender& contender : contenders) {
    results.push_back(std::move(contender.result()));
    results.back().rivals = trials.empty() ? 0 : trials.size() - 1;
    results.back().product = beside;
  }
  return results;
}

}  // namespace strobe::lab
