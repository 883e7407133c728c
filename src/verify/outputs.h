#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "strobe/implementation.h"
#include "strobe/oracle.h"

namespace strobe::lab {

/// A tensor that a run writes, and where its true value is found.
struct OutputField {
  std::string_view name;
  std::string_view label;  ///< as reports print it
  Pass pass;
  TensorView Tensors::*view;
  std::vector<double> OracleResult::*truth;
};

inline constexpr std::array kOutputs{
    OutputField{"out", "Output", Pass::forward, &Tensors::out, &OracleResult::out},
    OutputField{"lse", "LSE", Pass::forward, &Tensors::lse, &OracleResult::lse},
    OutputField{"dq", "dQ", Pass::backward, &Tensors::dq, &OracleResult::dq},
    OutputField{"dk", "dK", Pass::backward, &Tensors::dk, &OracleResult::dk},
    OutputField{"dv", "dV", Pass::backward, &Tensors::dv, &OracleResult::dv},
    OutputField{"dbias", "dBias", Pass::backward, &Tensors::dbias, &OracleResult::dbias},
    OutputField{"dsinks", "dSinks", Pass::backward, &Tensors::dsinks, &OracleResult::dsinks}};

}  // namespace strobe::lab
