#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strobe::cuda::jit {

/// FNV-1a: tells texts apart that differ by chance or by an edit, not those made to collide.
constexpr std::uint64_t hash_of(std::string_view text,
                                std::uint64_t before = 14695981039346656037u) {
  std::uint64_t hash = before;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

/// Sixteen digits.
inline std::string hash_text(std::uint64_t hash) {
  std::string digits(16, '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, hash >>= 4) {
    *digit = "0123456789abcdef"[hash & 15];
  }
  return digits;
}

}  // namespace strobe::cuda::jit
