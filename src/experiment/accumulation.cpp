// Sums of low precision, and what their order is worth: alone, in a softmax and in attention. Pure
// arithmetic, so it gives the same figures on every machine.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "experiment/experiment.h"
#include "experiment/summation.h"
#include "report/charts.h"
#include "report/table.h"
#include "report/text.h"
#include "verify/random.h"

namespace strobe::lab {
namespace {

constexpr DType kAccumulators[] = {DType::fp16, DType::bf16, DType::fp32};

using Way = std::pair<DType, SumOrder>;
using ErrorOfWay = std::map<Way, double>;

/// Numbers that every accumulator here takes as they are: uniform in [0, 1), of 11 bits.
std::vector<float> positive_terms(std::int64_t count, std::uint32_t draw) {
  RandomStream random(0, draw);
  std::vector<float> terms;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto word = static_cast<double>(random.word(static_cast<std::uint64_t>(i)));
    terms.push_back(round_to(DType::fp16, static_cast<float>(word / 4294967296.0)));
  }
  return terms;
}

double true_sum(const std::vector<float>& terms) {
  double sum = 0;
  for (const float term : terms) sum += static_cast<double>(term);
  return sum;
}

/// The relative error of a sum of so many terms, as the root of its mean square over a few draws:
/// the error of one draw is chance.
double sum_error(const Way& way, std::int64_t count) {
  constexpr std::uint32_t kDraws = 8;
  double squares = 0;
  for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
    const std::vector<float> terms = positive_terms(count, draw);
    const double truth = true_sum(terms);
    if (truth == 0) continue;
    const double error =
        (static_cast<double>(sum_in(way.first, way.second, terms)) - truth) / truth;
    squares += error * error;
  }
  return std::sqrt(squares / kDraws);
}

/// One row of attention whose inputs are of the problem's dtype: all sums in one way, the weights
/// rounded to the dtype before they meet the values, as kernels do.
class SmallAttention {
 public:
  explicit SmallAttention(const Problem& problem)
      : dtype_(problem.dtype),
        keys_(problem.keys()),
        dim_(problem.dim),
        scale_(static_cast<float>(problem.softmax_scale())) {
    k_ = drawn(1, keys_ * dim_);
    v_ = drawn(2, keys_ * dim_);
  }

  struct Error {
    double weights = 0;  ///< of the sum that the softmax divides by, relative
    double output = 0;   ///< of an element of the output, the mean over them
  };

  Error error_of(const Way& way, std::uint32_t query) const {
    const std::vector<float> q = drawn(3 + query, dim_);
    const std::vector<double> truth = output_in_double(q);
    const std::vector<float> scores = scores_of(q, way);
    float largest = scores.front();
    for (const float score : scores) largest = std::max(largest, score);
    std::vector<float> weights;
    for (const float score : scores) weights.push_back(std::exp(score - largest));
    const float sum = sum_in(way.first, way.second, weights);
    Error error{.weights = std::abs(static_cast<double>(sum) / true_sum(weights) - 1)};
    for (float& weight : weights) weight = round_to(dtype_, weight);
    std::vector<float> products(weights.size());
    for (std::int64_t c = 0; c < dim_; ++c) {
      for (std::int64_t j = 0; j < keys_; ++j)
        products[at(j)] = weights[at(j)] * v_[at(j * dim_ + c)];
      const float output = sum_in(way.first, way.second, products) / sum;
      error.output += std::abs(static_cast<double>(output) - truth[at(c)]);
    }
    error.output /= static_cast<double>(dim_);
    return error;
  }

 private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

  std::vector<float> drawn(std::uint32_t stream, std::int64_t count) const {
    RandomStream random(1, stream);
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(round_to(dtype_, random.normal(static_cast<std::uint64_t>(i))));
    return values;
  }

  std::vector<float> scores_of(const std::vector<float>& q, const Way& way) const {
    std::vector<float> scores, products(q.size());
    for (std::int64_t j = 0; j < keys_; ++j) {
      for (std::int64_t c = 0; c < dim_; ++c) products[at(c)] = q[at(c)] * k_[at(j * dim_ + c)];
      scores.push_back(scale_ * sum_in(way.first, way.second, products));
    }
    return scores;
  }

  std::vector<double> output_in_double(const std::vector<float>& q) const {
    std::vector<double> scores, output(at(dim_), 0.0);
    for (std::int64_t j = 0; j < keys_; ++j) {
      double score = 0;
      for (std::int64_t c = 0; c < dim_; ++c)
        score += static_cast<double>(q[at(c)]) * static_cast<double>(k_[at(j * dim_ + c)]);
      scores.push_back(static_cast<double>(scale_) * score);
    }
    double sum = 0;
    for (std::int64_t j = 0; j < keys_; ++j) {
      const double weight = std::exp(scores[at(j)]);
      sum += weight;
      for (std::int64_t c = 0; c < dim_; ++c)
        output[at(c)] += weight * static_cast<double>(v_[at(j * dim_ + c)]);
    }
    for (double& value : output) value /= sum;
    return output;
  }

  DType dtype_;
  std::int64_t keys_, dim_;
  float scale_;
  std::vector<float> k_{}, v_{};
};

/// Errors of the three sums, for each way to add.
struct ErrorsOfWays {
  ErrorOfWay sum{}, weights{}, output{};
};

ErrorsOfWays errors_of_ways(const ExperimentSetup& setup, const Problem& problem) {
  const std::uint32_t queries = setup.quick ? 1 : 4;
  const SmallAttention attention(problem);
  ErrorsOfWays errors;
  for (const DType accumulator : kAccumulators) {
    for (const SumOrder order : kSumOrders) {
      const Way way{accumulator, order};
      setup.announce(fmt::format("{} sums in {}", name_of(order), name_of(accumulator)));
      errors.sum[way] = sum_error(way, problem.keys());
      for (std::uint32_t query = 0; query < queries; ++query) {
        const auto error = attention.error_of(way, query);
        errors.weights[way] = std::max(errors.weights[way], error.weights);
        errors.output[way] += error.output / queries;
      }
    }
  }
  return errors;
}

std::string ways_table(const ErrorsOfWays& errors) {
  Table table({{"Sums in"},
               {"Order"},
               {"Sum, relative", kRight},
               {"Softmax, relative", kRight},
               {"Attention, mean", kRight}});
  for (const auto& [way, error] : errors.sum) {
    table.add_row({std::string(name_of(way.first)), std::string(name_of(way.second)),
                   error_text(error), error_text(errors.weights.at(way)),
                   error_text(errors.output.at(way))});
  }
  return table.render();
}

/// What rounding does to a thousand times 0.01, which is 10: the usual first lesson.
std::string thousand_hundredths() {
  const auto sum = [](DType terms, DType accumulator) {
    const std::vector<float> all(1000, round_to(terms, 0.01F));
    return sum_in(accumulator, SumOrder::sequential, all);
  };
  Table table({{"0.01 a thousand times"}, {"Sum", Align::right}});
  for (const auto& [terms, accumulator] :
       {std::pair{DType::fp32, DType::fp32}, std::pair{DType::fp16, DType::fp16},
        std::pair{DType::fp16, DType::fp32}, std::pair{DType::bf16, DType::bf16}}) {
    table.add_row({fmt::format("{} in {}", name_of(terms), name_of(accumulator)),
                   fmt::format("{:.4f}", sum(terms, accumulator))});
  }
  return table.render();
}

std::string lengths_chart(std::int64_t longest) {
  constexpr Way kShown[] = {
      {DType::bf16, SumOrder::sequential}, {DType::fp16, SumOrder::sequential},
      {DType::fp16, SumOrder::blocked},    {DType::fp16, SumOrder::pairwise},
      {DType::fp16, SumOrder::kahan},      {DType::fp32, SumOrder::sequential},
      {DType::fp32, SumOrder::pairwise}};
  LineChart chart{.title = "Error of a sum against its length",
                  .x_title = "Terms",
                  .y_title = "Relative error against fp64"};
  for (const Way& way : kShown) {
    LineChart::Line line{.label = fmt::format("{} {}", name_of(way.first), name_of(way.second))};
    for (std::int64_t count = 16; count <= longest; count *= 4)
      line.points.emplace_back(static_cast<double>(count), sum_error(way, count));
    chart.lines.push_back(std::move(line));
  }
  return svg_of(chart);
}

Expectation low_precision_stalls(const ErrorsOfWays& errors) {
  constexpr double kWrong = 0.1;
  const double error = errors.sum.at({DType::bf16, SumOrder::sequential});
  return {.expected = "one after the other, a long sum in bf16 stops growing",
          .rule = fmt::format("its relative error is above {}", kWrong),
          .seen = error_text(error),
          .conclusion = Expectation::decide(error > kWrong)};
}

Expectation order_matters(const ErrorsOfWays& errors) {
  constexpr double kTimes = 4;
  const double sequential = errors.sum.at({DType::fp32, SumOrder::sequential});
  const double pairwise = errors.sum.at({DType::fp32, SumOrder::pairwise});
  return {.expected = "adding in pairs is more exact than one after the other, also in fp32",
          .rule = fmt::format("the error is at least {} times smaller", kTimes),
          .seen = fmt::format("{} against {}", error_text(pairwise), error_text(sequential)),
          .conclusion = Expectation::decide(pairwise * kTimes <= sequential && sequential > 0)};
}

Expectation compensation_repairs(const ErrorsOfWays& errors) {
  constexpr double kLastPlace = 1.0 / 1024;
  const double kahan = errors.sum.at({DType::fp16, SumOrder::kahan});
  const double sequential = errors.sum.at({DType::fp16, SumOrder::sequential});
  return {.expected = "Kahan's correction makes a sum in fp16 as exact as fp16 can say it",
          .rule = "its relative error is at most 2^-10, and that without it is larger",
          .seen = fmt::format("{} with, {} without", error_text(kahan), error_text(sequential)),
          .conclusion = Expectation::decide(kahan <= kLastPlace && sequential > kLastPlace)};
}

Expectation mixed_precision_pays(const ErrorsOfWays& errors, DType dtype) {
  constexpr double kTimes = 4;
  const DType low = dtype == DType::fp32 ? DType::bf16 : dtype;
  const double narrow = errors.output.at({low, SumOrder::sequential});
  const double wide = errors.output.at({DType::fp32, SumOrder::sequential});
  return {.expected = fmt::format("attention in {} needs sums in fp32", name_of(dtype)),
          .rule = fmt::format("with sums in {} its mean error is at least {} times that with sums "
                              "in fp32",
                              name_of(low), kTimes),
          .seen = fmt::format("{} against {}", error_text(narrow), error_text(wide)),
          .conclusion = Expectation::decide(narrow > wide && narrow >= kTimes * wide)};
}

}  // namespace

Findings accumulation_experiment(const ExperimentSetup& setup) {
  const Problem problem = setup.problem(
      {.seqlen_q = 1, .seqlen_k = setup.quick ? 4096 : 32768, .dim = 64, .dtype = DType::bf16});
  const ErrorsOfWays errors = errors_of_ways(setup, problem);
  Findings findings{
      .subject = fmt::format("sums of {} terms; attention of single queries over as many keys, "
                             "head dim {}, inputs in {}; computed on the CPU",
                             problem.keys(), problem.dim, name_of(problem.dtype)),
      .tables = ways_table(errors) + "\n" + thousand_hundredths(),
      .expectations = {low_precision_stalls(errors), order_matters(errors),
                       compensation_repairs(errors), mixed_precision_pays(errors, problem.dtype)},
      .why =
          "A sum that has grown swallows terms below half of its last place. In order it meets "
          "every term with its full size, in blocks and pairs sums of like size meet, and "
          "Kahan's correction carries on what was swallowed. Matrix units and flash attention "
          "therefore take factors of 16 bits and add in fp32, block by block.",
      .files = {{"accumulation.svg", lengths_chart(problem.keys())}}};
  for (const auto& [way, error] : errors.sum) {
    findings.results.push_back({{"accumulator", name_of(way.first)},
                                {"order", name_of(way.second)},
                                {"terms", problem.keys()},
                                {"sum_error", error},
                                {"softmax_error", errors.weights.at(way)},
                                {"attention_error", errors.output.at(way)}});
  }
  return findings;
}

}  // namespace strobe::lab
