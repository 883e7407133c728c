#pragma once

#include "cpu/generic/math.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// Hands out aligned pieces of a work item's scratch; with no memory it only measures.
class Scratch {
 public:
  explicit Scratch(void* memory) : base_(static_cast<char*>(memory)) {}

  void* bytes(std::int64_t count) {
    char* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += round_up(count, 64);
    return piece;
  }
  template <class T>
  T* take(std::int64_t count) {
    return static_cast<T*>(bytes(count * static_cast<std::int64_t>(sizeof(T))));
  }
  std::int64_t used() const { return used_; }

 private:
  char* base_;
  std::int64_t used_ = 0;
};

/// How much of it a work item's buffers take.
template <class Buffers, class... Sizes>
inline std::int64_t bytes_of(Sizes... sizes) {
  Scratch scratch(nullptr);
  const Buffers buffers(scratch, sizes...);
  return scratch.used();
}

inline void fill(float* target, std::int64_t count, float value) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = value;
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
