#include "measure/tuning.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/in_order.h"
#include "verify/execution.h"

namespace strobe::lab {
namespace {

constexpr std::size_t kHeat = 7;       // besides the usual one
constexpr std::size_t kFinalists = 3;  // likewise
constexpr double kFinalShare = 0.5;    // of the budget

std::size_t heats_of(std::size_t others) {
  return (others + kHeat - 1) / kHeat;
}

/// Shrunk until the oracle can afford all of it. The variant does not depend on lengths and heads.
Problem small_version(Problem problem) {
  constexpr std::int64_t kLength = 300;  // several tiles, and no whole number of any
  problem.batch = 1;
  problem.heads = problem.group();
  problem.heads_k = 1;
  problem.seqlen_k = std::min(problem.keys(), kLength);
  problem.seqlen_q = std::min(problem.seqlen_q, kLength);
  return problem;
}

/// Its options, with what the plan chose by the lengths said aloud: a small problem would choose
/// another.
PlanOptions as_planned(const Benchmark& b) {
  PlanOptions options = b.options;
  for (const auto& [name, value] : b.tuning) {
    if (name == "reference") options.reference = parse_softmax_reference(value).value();
  }
  return options;
}

/// Tries variants of one problem. Each stays in its place in `tuning_.variants`.
class Tuner {
 public:
  Tuner(const Implementation& implementation, const Problem& problem, const PlanOptions& options,
        const TuningPolicy& policy, const TuningProgress& progress)
      : implementation_(implementation),
        problem_(problem),
        options_(options),
        policy_(policy),
        progress_(progress) {}

  Tuning run(const std::vector<std::string>& variants);

 private:
  using Places = std::vector<std::size_t>;

  Entrant entrant(const std::string& variant) const;
  Benchmark planned(const std::string& variant) const;
  void compile(const std::vector<std::string>& variants);
  void run_heats(Operands& operands);
  void run_final(Operands& operands);
  void race(Operands& operands, const Places& others, const SpotCheck* check, double seconds,
            int min_samples);
  void choose(const Places& finalists);
  bool proven(VariantResult& result) const;
  Places others() const;
  Places fastest_first(Places places) const;
  void next_step(const std::string& what) { progress_(step_++, steps_, what); }

  const Implementation& implementation_;
  Problem problem_;
  PlanOptions options_;
  TuningPolicy policy_;
  const TuningProgress& progress_;
  std::size_t step_ = 0, steps_ = 0;
  Tuning tuning_{};
};

Entrant Tuner::entrant(const std::string& variant) const {
  Entrant entrant{&implementation_, options_};
  entrant.options.variant = variant;
  return entrant;
}

/// Planning compiles. The result has no times, or a reason why there will be none.
Benchmark Tuner::planned(const std::string& variant) const {
  const PlanOptions options = entrant(variant).options;
  Benchmark result{.implementation = full_name(implementation_),
                   .device = device_of(implementation_, options),
                   .options = options,
                   .problem = problem_};
  try {
    result.tuning = implementation_.plan(problem_, options).tuning;
  } catch (const Unsupported& error) {
    result.status = Status::unsupported;
    result.reason = error.what();
  } catch (const InvalidArgument&) {  // of whoever named the variant
    throw;
  } catch (const Error& error) {
    result.status = Status::failed;
    result.reason = error.what();
  }
  return result;
}

void Tuner::compile(const std::vector<std::string>& variants) {
  make_in_order<Benchmark>(
      variants.size(), policy_.threads, [&](std::size_t i) { return planned(variants[i]); },
      [&](std::size_t i, const Benchmark& result) {
        next_step(fmt::format("compiling {}", variants[i]));
        tuning_.variants.push_back({.variant = variants[i], .benchmark = result});
      });
}

/// Times these and the usual one in turns.
void Tuner::race(Operands& operands, const Places& others, const SpotCheck* check, double seconds,
                 int min_samples) {
  Places places{0};
  places.insert(places.end(), others.begin(), others.end());
  std::vector<Entrant> entrants;
  for (const std::size_t place : places)
    entrants.push_back(entrant(tuning_.variants[place].variant));
  SamplingPolicy policy;
  policy.target = 0.002;
  policy.warmup_s = 0.1;
  policy.min_samples = min_samples;
  policy.budget_s = seconds / static_cast<double>(places.size());
  policy.stopwatch = policy_.stopwatch;
  std::vector<Benchmark> results = benchmark(entrants, operands, problem_.pass, check, policy);
  const Benchmark& usual = results.front();
  for (std::size_t i = 0; i < places.size(); ++i) {
    VariantResult& known = tuning_.variants[places[i]];
    // What the check said of it in its heat stays true.
    if (check == nullptr) results[i].accuracy = known.benchmark.accuracy;
    known.ratio = usual.timed() && results[i].timed()
                      ? results[i].measurement.ms.median / usual.measurement.ms.median
                      : 0;
    known.benchmark = results[i];
  }
}

void Tuner::run_heats(Operands& operands) {
  constexpr int kMinSamples = 6;
  const SpotCheck check(operands, problem_.pass);
  const Places able = others();
  const std::size_t heats = std::max<std::size_t>(1, heats_of(able.size()));
  const double seconds = policy_.budget_s * (1 - kFinalShare) / static_cast<double>(heats);
  for (std::size_t heat = 0; heat < heats; ++heat) {
    next_step(fmt::format("heat {} of {}", heat + 1, heats));
    // Every so many-th, so that each heat has variants of all kinds.
    Places some;
    for (std::size_t i = heat; i < able.size(); i += heats) some.push_back(able[i]);
    race(operands, some, &check, seconds, kMinSamples);
    if (tuning_.usual().benchmark.status != Status::ok) return;
  }
}

/// All but the usual one, as far as nothing speaks against them.
Tuner::Places Tuner::others() const {
  Places places;
  for (std::size_t i = 1; i < tuning_.variants.size(); ++i) {
    if (tuning_.variants[i].benchmark.status == Status::ok) places.push_back(i);
  }
  return places;
}

/// Of these, those that were timed and are right.
Tuner::Places Tuner::fastest_first(Places places) const {
  const auto& all = tuning_.variants;
  std::erase_if(places, [&all](std::size_t place) {
    return all[place].benchmark.status != Status::ok || all[place].ratio <= 0;
  });
  std::sort(places.begin(), places.end(),
            [&all](std::size_t a, std::size_t b) { return all[a].ratio < all[b].ratio; });
  return places;
}

/// Where the problem is too large for a verdict, a small one with the same variant gives it.
bool Tuner::proven(VariantResult& result) const {
  Benchmark& b = result.benchmark;
  if (b.accuracy.verdict != Verdict::not_checked || problem_.varlen()) return true;
  const Implementation* const implementation = &implementation_;
  const Report report =
      verify({.problem = small_version(problem_)}, std::span(&implementation, 1), as_planned(b))
          .front();
  if (report.status == Status::ok) {
    b.accuracy.verdict = Verdict::pass;
    b.accuracy.scope = "a smaller problem";
    return true;
  }
  b.status = report.status;
  b.reason = report.reason;
  return false;
}

/// The fastest that is right. Less than the threshold is not worth being another than usual.
void Tuner::choose(const Places& finalists) {
  constexpr double kThreshold = 0.005;
  const auto samples = [this](std::size_t place) -> const std::vector<double>& {
    return tuning_.variants[place].benchmark.measurement.samples_ms;
  };
  for (const std::size_t place : finalists) {
    const Judgement judgement = judge_pairs(samples(0), samples(place), kThreshold);
    if (judgement.change != Change::faster) continue;
    if (!proven(tuning_.variants[place])) continue;
    tuning_.fastest = place;
    tuning_.judgement = judgement;
    return;
  }
}

void Tuner::run_final(Operands& operands) {
  constexpr int kMinSamples = 20;
  next_step("the fastest once more");
  Places finalists = fastest_first(others());
  finalists.resize(std::min(finalists.size(), kFinalists));
  if (finalists.empty()) return;
  race(operands, finalists, nullptr, policy_.budget_s * kFinalShare, kMinSamples);
  choose(fastest_first(finalists));
}

Tuning Tuner::run(const std::vector<std::string>& variants) {
  const auto usual_is_out = [this] { return tuning_.usual().benchmark.status != Status::ok; };
  steps_ = tuning_steps(variants.size());
  compile(variants);
  if (usual_is_out()) return std::move(tuning_);
  Operands operands({.problem = problem_});
  run_heats(operands);
  if (!usual_is_out()) run_final(operands);
  return std::move(tuning_);
}

}  // namespace

std::size_t tuning_steps(std::size_t variants) {
  return variants + std::max<std::size_t>(1, heats_of(variants > 0 ? variants - 1 : 0)) + 1;
}

Tuning tune(const Implementation& implementation, const Problem& problem,
            const PlanOptions& options, const std::vector<std::string>& variants,
            const TuningPolicy& policy, const TuningProgress& progress) {
  return Tuner(implementation, problem, options, policy, progress).run(variants);
}

}  // namespace strobe::lab
