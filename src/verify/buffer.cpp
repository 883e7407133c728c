#include "verify/buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "strobe/error.h"
#include "verify/parts.h"

namespace strobe::lab {
namespace {

constexpr std::size_t kAlignment = 64;

// Smaller requests are not worth asking the system first.
constexpr std::size_t kLargeBytes = std::size_t{64} << 20;

[[noreturn]] void refuse(std::size_t bytes) {
  throw OutOfMemory(fmt::format(
      "{:.1f} GB of memory are needed at once and {:.1f} GB are free; make batch, seqlen or heads "
      "smaller, or use an implementation with a smaller workspace",
      static_cast<double>(bytes) / 1e9, static_cast<double>(available_memory()) / 1e9));
}

std::byte* allocate(std::size_t bytes, std::size_t guards) {
  if (bytes > std::numeric_limits<std::size_t>::max() - guards - kAlignment) refuse(bytes);
  // Linux promises memory it does not have and kills whoever touches it.
  const std::int64_t available = available_memory();
  if (bytes > kLargeBytes && available > 0 && bytes > static_cast<std::size_t>(available)) {
    refuse(bytes);
  }
  const std::size_t rounded = (bytes + guards + kAlignment - 1) / kAlignment * kAlignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (memory == nullptr) refuse(bytes);
  return memory;
}

template <class Word>
std::ptrdiff_t first_poisoned(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if (word == std::numeric_limits<Word>::max()) return static_cast<std::ptrdiff_t>(at);
  }
  return -1;
}
static_assert(kPoison == std::byte{0xFF});

}  // namespace

bool is_poison(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == kPoison &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::ptrdiff_t first_poison(std::span<const std::byte> bytes, std::size_t element) {
  return element == sizeof(std::uint16_t) ? first_poisoned<std::uint16_t>(bytes)
                                          : first_poisoned<std::uint32_t>(bytes);
}

Buffer::Buffer(std::size_t bytes) : bytes_(bytes), memory_(allocate(bytes, 2 * kGuardBytes)) {
  poison();
}

void Buffer::poison() {
  constexpr std::int64_t kLeastBytes = 4 << 20;
  const auto bytes = static_cast<std::int64_t>(whole().size());
  in_parts(bytes, kLeastBytes, [&](std::int64_t first, std::int64_t last) {
    std::memset(memory_.get() + first, std::to_integer<int>(kPoison),
                static_cast<std::size_t>(last - first));
  });
}

bool Buffer::guards_intact() const {
  return is_poison({memory_.get(), kGuardBytes}) && is_poison({data() + bytes_, kGuardBytes});
}

void Buffer::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

std::int64_t available_memory() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  for (std::int64_t kilobytes = 0; meminfo >> key >> kilobytes;) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace strobe::lab
