#include "verify/spot_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "strobe/error.h"
#include "strobe/oracle.h"
#include "strobe/registry.h"
#include "verify/execution.h"
#include "verify/random.h"
#include "verify/rows.h"
#include "verify/rule.h"
#include "verify/verify.h"

namespace strobe::lab {
namespace {

constexpr std::size_t kRows = 32;

// Multiply-adds of a forward pass that the oracle, and the baseline, may cost: about a second.
constexpr double kOracleLimit = 1.5e8;
constexpr double kBaselineLimit = 5e9;

// Rows that only the baseline's error is taken from, and multiply-adds that finding their truth may
// cost. The largest error of a few rows is a lottery: twice a lucky draw is no bound.
constexpr std::size_t kWitnesses = 128;
constexpr double kWitnessLimit = 2e7;

/// How many query tokens come before those of a sequence.
std::int64_t tokens_before(const Problem& problem, std::int64_t sequence) {
  if (!problem.varlen()) return sequence * problem.seqlen_q;
  const auto first = problem.lengths_q.begin();
  return std::accumulate(first, first + sequence, std::int64_t{0});
}

double work(const Problem& p) {
  return static_cast<double>(p.total_q()) * static_cast<double>(p.keys()) *
         static_cast<double>(p.heads) * static_cast<double>(p.dim + p.value_dim());
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::not_checked:
      return "not-checked";
    case Verdict::pass:
      return "pass";
    case Verdict::fail:
      return "fail";
  }
  return "unknown";
}

SpotCheck::SpotCheck(Operands& operands, Pass pass) : operands_(operands), pass_(pass) {
  if (pass == Pass::forward) {
    ask_rows();
  } else if (work(operands.problem()) <= kOracleLimit) {
    ask_gradients();
  } else {
    scope_ = "gradients of this size take the oracle too long; use strobe verify";
  }
  const Problem& problem = operands.problem();
  const bool few_rows = problem.total_q() * problem.heads < static_cast<std::int64_t>(kRows);
  if (questions_.empty() || few_rows || work(problem) > kBaselineLimit) return;
  try {
    run_baseline();
    for (Question& question : questions_) question.baseline = answer(question);
    if (pass == Pass::forward) elsewhere_ = error_on_other_rows();
    judged_ = true;
  } catch (const Unsupported&) {  // then there is no bound to judge by
  } catch (const OutOfMemory&) {
  }
}

/// Rows spread over the whole problem, a first and a last one of a sequence among them.
SpotCheck::SampledRows SpotCheck::sample_rows(std::size_t count, std::uint32_t draw) const {
  const Problem& problem = operands_.problem();
  SampledRows rows;
  if (problem.total_q() == 0) return rows;
  RandomStream random(0, draw);
  std::uint64_t draws = 0;
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random.word(draws++)) % limit;
  };
  while (rows.size() < count) {
    const std::int64_t sequence = below(problem.batch);
    const std::int64_t head = below(problem.heads);
    const std::int64_t length = problem.length_q(sequence);
    if (length == 0) continue;
    const std::int64_t query = rows.empty() ? 0 : rows.size() == 1 ? length - 1 : below(length);
    rows.push_back({sequence, head, query});
  }
  return rows;
}

std::vector<double> SpotCheck::true_values(const SampledRows& rows) const {
  Problem problem = operands_.problem();
  problem.pass = Pass::forward;
  const Tensors inputs = operands_.tensors(Pass::forward);
  std::vector<double> all;
  for (const Row& row : rows) {
    const OracleRow truth = oracle_row(problem, inputs, row.sequence, row.head, row.query);
    all.insert(all.end(), truth.out.begin(), truth.out.end());
  }
  return all;
}

void SpotCheck::ask_rows() {
  rows_ = sample_rows(kRows, 0);
  questions_.push_back({"out", &Tensors::out, true_values(rows_), {}});
  scope_ = fmt::format("{} rows", rows_.size());
}

ErrorLevel SpotCheck::error_on_other_rows() const {
  const Problem& p = operands_.problem();
  const double row_work =
      static_cast<double>(std::max<std::int64_t>(p.keys(), 1) * (p.dim + p.value_dim()));
  const auto affordable = static_cast<std::size_t>(kWitnessLimit / row_work);
  const SampledRows rows = sample_rows(std::min(kWitnesses, affordable), 1);
  return error_level(values(operands_.tensors(pass_).out, rows), true_values(rows));
}

void SpotCheck::ask_gradients() {
  OracleResult truth = oracle(operands_.problem(), operands_.tensors(Pass::backward));
  questions_.push_back({"dq", &Tensors::dq, std::move(truth.dq), {}});
  questions_.push_back({"dk", &Tensors::dk, std::move(truth.dk), {}});
  questions_.push_back({"dv", &Tensors::dv, std::move(truth.dv), {}});
  scope_ = "dq, dk, dv";
}

void SpotCheck::run_baseline() {
  const Implementation& baseline = Registry::instance().find(kBaselineName);
  Execution::make(baseline, operands_, Pass::forward)->run();
  if (pass_ == Pass::backward) Execution::make(baseline, operands_, Pass::backward)->run();
}

std::vector<double> SpotCheck::values(const TensorView& view, const SampledRows& rows) const {
  const Problem& problem = operands_.problem();
  std::vector<double> all;
  for (const Row& row : rows) {
    TensorView tokens = view;
    std::int64_t token = row.query;
    if (problem.varlen()) {
      token += tokens_before(problem, row.sequence);
    } else {
      tokens = view.select(0, row.sequence);
    }
    const TensorView vector = tokens.select(0, token).select(0, row.head);
    for (std::int64_t i = 0; i < vector.shape[0]; ++i) {
      all.push_back(load_element(vector.data, i, vector.dtype));
    }
  }
  return all;
}

std::vector<double> SpotCheck::answer(const Question& question) const {
  const TensorView view = operands_.tensors(pass_).*question.view;
  if (pass_ == Pass::backward) return to_doubles(packed_bytes(view), view.dtype);
  return values(view, rows_);
}

/// Where an element of an answer lies in its tensor. Those of the forward pass are of some rows.
std::string SpotCheck::index_text(const Question& question, std::int64_t element) const {
  const TensorView view = operands_.tensors(pass_).*question.view;
  if (pass_ == Pass::backward) return lab::index_text(view, element);
  const Problem& problem = operands_.problem();
  const std::int64_t dim = problem.value_dim();
  const Row& row = rows_[static_cast<std::size_t>(element / dim)];
  const std::int64_t token = tokens_before(problem, row.sequence) + row.query;
  return lab::index_text(view, (token * problem.heads + row.head) * dim + element % dim);
}

Accuracy SpotCheck::judge() const {
  Accuracy accuracy{.measured = !questions_.empty(), .scope = scope_};
  double sum = 0, count = 0;
  for (const Question& question : questions_) {
    const std::vector<double> ours = answer(question);
    const auto& bounds = judged_ ? question.baseline : question.oracle;
    const Comparison comparison =
        compare({ours, bounds, question.oracle},
                {.dtype = operands_.problem().dtype,
                 .gradient = pass_ == Pass::backward,
                 .elsewhere = elsewhere_,
                 .index_text = [&](std::int64_t i) { return index_text(question, i); }});
    accuracy.max_error = std::max(accuracy.max_error, comparison.max_error);
    sum += comparison.mean_error * static_cast<double>(ours.size());
    count += static_cast<double>(ours.size());
    if (judged_ && !comparison.pass() && accuracy.reason.empty())
      accuracy.reason = fmt::format("{}: {}", question.tensor, comparison.reason);
  }
  if (count > 0) accuracy.mean_error = sum / count;
  if (judged_) accuracy.verdict = accuracy.reason.empty() ? Verdict::pass : Verdict::fail;
  return accuracy;
}

}  // namespace strobe::lab
