#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

/// The fuzzer's bytes, read from the front as a series of choices. Zeros follow when they are used
/// up, and 0 is always the tame choice: an empty input is a well-formed call, every byte that is
/// not 0 makes one thing different.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> data) : data_(data) {}

  std::uint8_t byte() {
    if (data_.empty()) return 0;
    const std::uint8_t first = data_.front();
    data_ = data_.subspan(1);
    return first;
  }

  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[byte() % choices.size()];
  }

  /// One of the tame values, or in one case of eight a hostile one.
  std::int64_t number(std::initializer_list<std::int64_t> tame) {
    const std::uint8_t choice = byte();
    return choice < 224 ? tame.begin()[choice % tame.size()] : hostile(choice);
  }

 private:
  std::int64_t hostile(std::uint8_t choice) {
    using limits = std::numeric_limits<std::int64_t>;
    constexpr std::int64_t kValues[] = {0,
                                        -1,
                                        -2,
                                        513,
                                        1 << 16,
                                        std::int64_t{1} << 31,
                                        (std::int64_t{1} << 31) - 1,
                                        std::int64_t{1} << 62,
                                        limits::max(),
                                        limits::min()};
    if (choice % 2 == 0) return kValues[(choice / 2) % std::size(kValues)];
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return static_cast<std::int64_t>(value);
  }

  std::span<const std::uint8_t> data_;
};
