#include "cpu/matrix_units.h"

#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace strobe::cpu {

// Each is defined by its translation unit under isa/, compiled with that unit's flags.
#if defined(__x86_64__)
namespace amx_bf16 {
double multiply_add_loop(std::int64_t iterations);
}
namespace avx512_bf16 {
double multiply_add_loop(std::int64_t iterations);
}
#elif defined(__aarch64__)
namespace neon_bf16 {
double multiply_add_loop(std::int64_t iterations);
}
#endif

namespace {

#if defined(__x86_64__)
/// What CPUID leaf 7 says; all zero where there is no such leaf.
struct Features {
  explicit Features(unsigned subleaf) {
    unsigned ebx = 0;
    unsigned ecx = 0;
    if (!__get_cpuid_count(7, subleaf, &eax, &ebx, &ecx, &edx)) eax = edx = 0;
  }

  unsigned eax = 0;
  unsigned edx = 0;
};

bool has_avx512_bf16() {
  constexpr unsigned kAvx512Bf16 = 1U << 5;
  return __builtin_cpu_supports("avx512f") && (Features(1).eax & kAvx512Bf16) != 0;
}

/// The tile registers are large, so Linux hands them out only to a process that asks.
bool has_amx_bf16() {
  constexpr unsigned kAmxBf16AndTile = 1U << 22 | 1U << 24;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return (Features(0).edx & kAmxBf16AndTile) == kAmxBf16AndTile &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

constexpr std::array kUnits = {
    MatrixUnit{"amx", DType::bf16, has_amx_bf16, amx_bf16::multiply_add_loop},
    MatrixUnit{"avx512-bf16", DType::bf16, has_avx512_bf16, avx512_bf16::multiply_add_loop}};
#elif defined(__aarch64__)
bool has_neon_bf16() {
  constexpr unsigned long kBf16 = 1UL << 14;  // HWCAP2_BF16
  return (getauxval(AT_HWCAP2) & kBf16) != 0;
}

constexpr std::array kUnits = {
    MatrixUnit{"bfmmla", DType::bf16, has_neon_bf16, neon_bf16::multiply_add_loop}};
#else
constexpr std::array<MatrixUnit, 0> kUnits{};
#endif

}  // namespace

std::span<const MatrixUnit> matrix_units() {
  return kUnits;
}

}  // namespace strobe::cpu
