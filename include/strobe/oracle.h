#pragma once

#include <cstdint>
#include <vector>

#include "strobe/export.h"
#include "strobe/implementation.h"

namespace strobe {

/// What float64 arithmetic says, dense in the layout of the tensors: out and dq
/// [total_q, heads, dim], dk and dv [total_k, kv_heads, dim], lse as Tensors::lse, dbias as
/// Tensors::bias, dsinks [heads].
struct OracleResult {
  std::vector<double> out{}, lse{};
  std::vector<double> dq{}, dk{}, dv{}, dbias{}, dsinks{};
};

/// The truth that every implementation is held against: plain loops in float64 over the inputs
/// (q, k, v, bias, sinks, slopes, dout). Supports every problem; slow on purpose. For
/// Pass::backward it computes the forward pass as well. Reads no output tensor.
STROBE_API OracleResult oracle(const Problem& problem, const Tensors& inputs);

struct OracleRow {
  std::vector<double> out{};
  double lse = 0;
};

/// One row of the forward pass, to check long sequences by sample.
STROBE_API OracleRow oracle_row(const Problem& problem, const Tensors& inputs,
                                std::int64_t sequence, std::int64_t head, std::int64_t query);

}  // namespace strobe
