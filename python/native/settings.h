#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>

#include "strobe/problem.h"

namespace strobe::python {

namespace nb = nanobind;

/// Keyword arguments of a call that are no arrays.
struct Settings {
  bool causal = false;
  Window window{};
  std::optional<double> scale{};
  double softcap = 0;
  double dropout = 0;
  std::uint64_t dropout_seed = 0;
  std::optional<std::int64_t> max_seqlen_q{}, max_seqlen_k{};

  std::string implementation{};  ///< by name; empty picks the best
  int threads = 0;
  bool deterministic = false;
  bool tf32 = false;

  bool return_lse = false;                             ///< forward
  bool bias_gradient = false, sinks_gradient = false;  ///< backward
};

/// From keyword arguments by these names; None is as if it were not there. Throws nb::type_error
/// and InvalidArgument naming the argument.
Settings read_settings(const nb::dict& arguments);

}  // namespace strobe::python
