#pragma once

#include <array>
#include <cstdint>

#include "strobe/dropout.h"
#include "strobe/problem.h"

namespace strobe::reference {

/// What dropout does to the keys of one query, as dropout_keeps has it, with one call of the
/// generator for each four keys.
class DropoutRow {
 public:
  DropoutRow(const Problem& problem, std::int64_t sequence, std::int64_t head, std::int64_t query)
      : threshold_(dropout_threshold(problem.dropout)),
        kept_(static_cast<float>(1 / (1 - problem.dropout))),
        seed_{word(problem.dropout_seed), word(problem.dropout_seed >> 32)},
        counter_{0, word(query), word(head), word(sequence)} {}

  /// 1 / (1 - dropout) or 0. Fast where keys come in their order.
  float factor(std::int64_t key) {
    if (key / 4 != group_) draw(key / 4);
    return random_[static_cast<std::size_t>(key % 4)] >= threshold_ ? kept_ : 0;
  }

 private:
  template <class Integer>
  static std::uint32_t word(Integer value) {
    return static_cast<std::uint32_t>(value);
  }

  void draw(std::int64_t group) {
    group_ = group;
    counter_[0] = word(group);
    random_ = philox(counter_, seed_);
  }

  std::uint32_t threshold_;
  float kept_;
  std::array<std::uint32_t, 2> seed_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> random_{};
  std::int64_t group_ = -1;
};

}  // namespace strobe::reference
