#pragma once

#include <cstdint>

// Loops over contiguous float rows, written so that a compiler vectorises them without changing
// the order of any sum.
namespace strobe::reference {

/// out[0..columns) += Σ_k weights[k] · rows[k · stride + 0..columns), in the order of k.
void add_rows(float* out, std::int64_t columns, const float* weights, std::int64_t count,
              const float* rows, std::int64_t stride);

/// The same without the k where marks[k] is negative: what those rows hold is not looked at.
void add_marked_rows(float* out, std::int64_t columns, const float* weights, const float* marks,
                     std::int64_t count, const float* rows, std::int64_t stride);

/// values[0..count) *= factor
void multiply(float* values, std::int64_t count, float factor);

/// The largest that is not NaN; -inf if there is none.
float maximum(const float* values, std::int64_t count);

/// Σ values[0..count), as a few sums side by side.
float sum(const float* values, std::int64_t count);

}  // namespace strobe::reference
