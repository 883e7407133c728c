#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace strobe::lab {

/// The byte that memory is filled with before a run. A word of them is a NaN in every floating
/// type of the project, and one that no arithmetic makes by itself: what still holds it afterwards
/// was not written, and what no longer holds it was.
inline constexpr std::byte kPoison{0xFF};

/// True if every byte is poison.
bool is_poison(std::span<const std::byte> bytes);

/// Where the first element, of 2 or 4 bytes, begins that is poison; -1 if none is.
std::ptrdiff_t first_poison(std::span<const std::byte> bytes, std::size_t element);

/// Memory with a guard zone before and after, everything poisoned. The payload is aligned to 64.
class Buffer {
 public:
  /// Throws OutOfMemory also where the system would promise more memory than it has.
  explicit Buffer(std::size_t bytes);

  std::byte* data() const { return memory_.get() + kGuardBytes; }
  std::size_t size() const { return bytes_; }
  std::span<std::byte> payload() const { return {data(), bytes_}; }
  /// With the guard zones.
  std::span<std::byte> whole() const { return {memory_.get(), bytes_ + 2 * kGuardBytes}; }

  void poison();
  bool guards_intact() const;

  static constexpr std::size_t kGuardBytes = 256;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  std::size_t bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
};

/// Bytes that could be taken now without swapping, 0 if unknown.
std::int64_t available_memory();

}  // namespace strobe::lab
