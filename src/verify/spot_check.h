#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/operands.h"
#include "verify/rule.h"

namespace strobe::lab {

enum class Verdict : std::uint8_t { not_checked, pass, fail };

/// "not-checked", "pass", "fail": as in records.
std::string_view name_of(Verdict verdict);

/// How far the outputs of a run are from the truth, as far as was looked.
struct Accuracy {
  bool measured = false;
  double max_error = 0, mean_error = 0;
  Verdict verdict = Verdict::not_checked;  ///< by the rule
  std::string scope{};                     ///< what was compared, "32 rows", or why nothing was
  std::string reason{};  ///< of a failure: the first tensor that fails, and its worst element
};

/// Checks what a timed run left in its outputs without the cost of a full verification: some rows
/// of the output for the forward pass; the gradients for the backward pass where the oracle can
/// afford them. The bounds of the rule need the baseline to run too; where that is too dear, or the
/// problem has too few rows for its error to be a measure, errors are found and not judged.
class SpotCheck {
 public:
  /// Finds the truth. Overwrites the outputs of the operands.
  SpotCheck(Operands& operands, Pass pass);

  /// Compares the outputs as they are now.
  Accuracy judge() const;

 private:
  struct Row {
    std::int64_t sequence, head, query;
  };
  /// One comparison: an output, its true values and the baseline's.
  struct Question {
    std::string_view tensor;
    TensorView Tensors::*view;
    std::vector<double> oracle, baseline;
  };

  using SampledRows = std::vector<Row>;

  SampledRows sample_rows(std::size_t count, std::uint32_t draw) const;
  std::vector<double> true_values(const SampledRows& rows) const;
  std::vector<double> values(const TensorView& view, const SampledRows& rows) const;
  void ask_rows();
  void ask_gradients();
  void run_baseline();
  ErrorLevel error_on_other_rows() const;
  std::vector<double> answer(const Question& question) const;
  std::string index_text(const Question& question, std::int64_t element) const;

  Operands& operands_;
  Pass pass_;
  SampledRows rows_{};  ///< of the forward pass
  std::vector<Question> questions_{};
  ErrorLevel elsewhere_{};  ///< the baseline's error on further rows of the forward pass
  std::string scope_{};
  bool judged_ = false;
};

}  // namespace strobe::lab
