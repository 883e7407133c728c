#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "measure/benchmark.h"
#include "measure/product_trial.h"

namespace strobe::cli {

/// The product of matrices that takes turns with what is compared, if one was asked for.
class ProductBeside {
 public:
  /// Of matrices of so many rows, where the entrants run; 0: none. Throws InvalidArgument if they
  /// run on several devices.
  ProductBeside(std::int64_t size, std::span<const lab::Entrant> entrants);

  /// For problems of this dtype, kept for the next of them; null if there is none.
  const lab::ProductTrial* of(DType dtype);

  /// Why there is none although it was asked for; else empty.
  const std::string& reason() const { return reason_; }

  /// "product of 8192x8192"
  std::string name() const;

 private:
  std::int64_t size_;
  PlanOptions options_{};
  Device device_{};
  std::optional<lab::ProductTrial> trial_{};
  std::string reason_{};
};

}  // namespace strobe::cli
