#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/implementation.h"
#include "strobe/problem.h"

namespace strobe::lab {

/// How the tensors lie in memory, whatever the problem's layout.
enum class Storage : std::uint8_t {
  contiguous,
  transposed,         ///< heads outside of the sequence: [b, h, s, d] in memory
  sliced,             ///< one element into a larger buffer, rows padded: no alignment at all
  expanded,           ///< k and v with stride 0 along the batch; dense problems only
  noncontiguous_dout  ///< only dout is strided, as autograd hands it over
};

/// What q and k hold. Values are always normal.
enum class Distribution : std::uint8_t {
  normal,
  opposed  ///< q positive, k negative: every logit is far below zero
};

/// The numbers of a case: everything about the operands that the problem does not say.
struct Inputs {
  double scale = 1;  ///< factor on q, k and v
  Distribution distribution = Distribution::normal;
  std::uint64_t seed = 0;
  Storage storage = Storage::contiguous;
  bool masked_bias = false;  ///< a third of the bias, and whole rows, are minus infinity

  bool operator==(const Inputs&) const = default;
};

/// One problem with its numbers: what a test runs, a benchmark times and a report names.
struct Case {
  Problem problem{};
  Inputs inputs{};

  bool operator==(const Case&) const = default;

  /// The problem's text form and whatever else differs from the defaults, e.g.
  /// "b2 sq113 h4 d64 fp16 causal, x3, transposed, inputs 7".
  std::string name() const;

  /// The command that verifies this case again, planned in the same way; "" for a guest, which the
  /// program does not have.
  std::string command(const Implementation& implementation, const PlanOptions& options = {}) const;
};

std::string_view name_of(Storage storage);
std::string_view name_of(Distribution distribution);
const std::vector<std::string>& storage_names();
const std::vector<std::string>& distribution_names();

/// Throws InvalidArgument listing the names there are.
Storage parse_storage(std::string_view name);
Distribution parse_distribution(std::string_view name);

}  // namespace strobe::lab
