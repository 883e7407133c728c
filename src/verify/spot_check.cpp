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
    judged_ = true;
  } catch (const Unsupported&) {  // then there is no bound to judge by
  } catch (const OutOfMemory&) {
  }
}

/// Rows spread over the whole problem, a first and a last one of a sequence among them.
void SpotCheck::sample_rows() {
  const Problem& problem = operands_.problem();
  if (problem.total_q() == 0) return;
  RandomStream random(0, 0);
  std::uint64_t draws = 0;
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random.word(draws++)) % limit;
  };
  while (rows_.size() < kRows) {
    const std::int64_t sequence = below(problem.batch);
    const std::int64_t head = below(problem.heads);
    const std::int64_t length = problem.length_q(sequence);
    if (length == 0) continue;
    const std::int64_t query = rows_.empty() ? 0 : rows_.size() == 1 ? length - 1 : below(length);
    rows_.push_back({sequence, head, query});
  }
}

void SpotCheck::ask_rows() {
  sample_rows();
  Question question{.view = &Tensors::out, .oracle = {}, .baseline = {}};
  Problem problem = operands_.problem();
  problem.pass = Pass::forward;
  const Tensors inputs = operands_.tensors(Pass::forward);
  for (const Row& row : rows_) {
    const OracleRow truth = oracle_row(problem, inputs, row.sequence, row.head, row.query);
    question.oracle.insert(question.oracle.end(), truth.out.begin(), truth.out.end());
  }
  questions_.push_back(std::move(question));
  scope_ = fmt::format("{} rows", rows_.size());
}

void SpotCheck::ask_gradients() {
  OracleResult truth = oracle(operands_.problem(), operands_.tensors(Pass::backward));
  questions_.push_back({&Tensors::dq, std::move(truth.dq), {}});
  questions_.push_back({&Tensors::dk, std::move(truth.dk), {}});
  questions_.push_back({&Tensors::dv, std::move(truth.dv), {}});
  scope_ = "dq, dk, dv";
}

void SpotCheck::run_baseline() {
  const Implementation& baseline = Registry::instance().find(kBaselineName);
  Execution(baseline, operands_, Pass::forward).run();
  if (pass_ == Pass::backward) Execution(baseline, operands_, Pass::backward).run();
}

std::vector<double> SpotCheck::answer(const Question& question) const {
  const TensorView view = operands_.tensors(pass_).*question.view;
  if (pass_ == Pass::backward) return to_doubles(packed_bytes(view), view.dtype);
  const Problem& problem = operands_.problem();
  std::vector<double> values;
  for (const Row& row : rows_) {
    TensorView tokens = view;
    std::int64_t token = row.query;
    if (problem.varlen()) {
      const auto first = problem.lengths_q.begin();
      token += std::accumulate(first, first + row.sequence, std::int64_t{0});
    } else {
      tokens = view.select(0, row.sequence);
    }
    const TensorView vector = tokens.select(0, token).select(0, row.head);
    for (std::int64_t i = 0; i < vector.shape[0]; ++i) {
      values.push_back(load_element(vector.data, i, vector.dtype));
    }
  }
  return values;
}

Accuracy SpotCheck::judge() const {
  Accuracy accuracy{.measured = !questions_.empty(), .scope = scope_};
  double sum = 0, count = 0;
  for (const Question& question : questions_) {
    const std::vector<double> ours = answer(question);
    const auto& bounds = judged_ ? question.baseline : question.oracle;
    const Comparison comparison =
        compare({ours, bounds, question.oracle},
                {.dtype = operands_.problem().dtype, .gradient = pass_ == Pass::backward});
    accuracy.max_error = std::max(accuracy.max_error, comparison.max_error);
    sum += comparison.mean_error * static_cast<double>(ours.size());
    count += static_cast<double>(ours.size());
    if (judged_ && !comparison.pass()) accuracy.reason = comparison.reason;
  }
  if (count > 0) accuracy.mean_error = sum / count;
  if (judged_) accuracy.verdict = accuracy.reason.empty() ? Verdict::pass : Verdict::fail;
  return accuracy;
}

}  // namespace strobe::lab
