#pragma once
// For tests of what reads and writes memory by its own account of where the end is.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <random>

namespace strobe::test {

/// Bytes of all ones, a NaN in every format, that end at a page without access.
class Fenced {
 public:
  explicit Fenced(std::int64_t bytes) {
    const std::int64_t page = sysconf(_SC_PAGESIZE);
    const std::int64_t room = (bytes + page - 1) / page * page;
    mapped_ = static_cast<std::size_t>(room + page);
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(static_cast<char*>(base_) + room, static_cast<std::size_t>(page), PROT_NONE);
    data_ = static_cast<char*>(base_) + room - bytes;
    std::memset(data_, 0xFF, static_cast<std::size_t>(bytes));
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced() { munmap(base_, mapped_); }

  void* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }

 private:
  std::size_t mapped_;
  void* base_;
  char* data_;
};

/// Numbers of either sign, none so small that a product or its low term would be subnormal.
inline float draw(std::mt19937& random) {
  std::uniform_real_distribution<float> size(0.25F, 3.0F);
  return (random() & 1U) != 0 ? size(random) : -size(random);
}

}  // namespace strobe::test
