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
namespace scalar_int8 {
double multiply_add_loop(std::int64_t iterations);
}
#if defined(__x86_64__)
namespace amx_peak {
double multiply_add_loop(std::int64_t iterations);
}
namespace amx_int8 {
double multiply_add_loop(std::int64_t iterations);
}
namespace avx512_bf16_peak {
double multiply_add_loop(std::int64_t iterations);
}
namespace avx512_vnni {
double multiply_add_loop(std::int64_t iterations);
}
namespace avx_vnni {
double multiply_add_loop(std::int64_t iterations);
}
namespace avx2_int8 {
double multiply_add_loop(std::int64_t iterations);
}
#elif defined(__aarch64__)
namespace bfmmla_peak {
double multiply_add_loop(std::int64_t iterations);
}
namespace neon_dot {
double multiply_add_loop(std::int64_t iterations);
}
namespace neon_i8mm {
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

bool offers_avx512_bf16() {
  constexpr unsigned kAvx512Bf16 = 1U << 5;
  return __builtin_cpu_supports("avx512f") && (Features(1).eax & kAvx512Bf16) != 0;
}

bool offers_avx512_vnni() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni");
}

bool offers_avx_vnni() {
  constexpr unsigned kAvxVnni = 1U << 4;
  return __builtin_cpu_supports("avx2") && (Features(1).eax & kAvxVnni) != 0;
}

bool offers_avx2() {
  return __builtin_cpu_supports("avx2");
}

/// The tile registers are large, so Linux hands them out only to a process that asks.
bool offers_amx(unsigned kind) {
  constexpr unsigned kTile = 1U << 24;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return (Features(0).edx & (kTile | kind)) == (kTile | kind) &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool offers_amx_bf16() {
  return offers_amx(1U << 22);
}

bool offers_amx_int8() {
  return offers_amx(1U << 25);
}

// fp32 and fp16 as sums of bf16 terms, see engine/tile_product.h: six and four products for one.
double amx_fp32_loop(std::int64_t iterations) {
  return amx_peak::multiply_add_loop(iterations) / 6;
}
double amx_fp16_loop(std::int64_t iterations) {
  return amx_peak::multiply_add_loop(iterations) / 4;
}
#elif defined(__aarch64__)
bool offers_bfmmla() {
  constexpr unsigned long kBf16 = 1UL << 14;  // HWCAP2_BF16
  return (getauxval(AT_HWCAP2) & kBf16) != 0;
}

bool offers_neon_i8mm() {
  constexpr unsigned long kI8mm = 1UL << 13;  // HWCAP2_I8MM
  return (getauxval(AT_HWCAP2) & kI8mm) != 0;
}

bool offers_neon_dot() {
  constexpr unsigned long kDotProduct = 1UL << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kDotProduct) != 0;
}
#endif

bool offered_always() {
  return true;
}

// The instructions that multiply unsigned by signed bytes stand for kernels of signed ones, which
// shift one side.
constexpr std::array kUnits = {
#if defined(__x86_64__)
    MatrixUnit{"amx", DType::bf16, "avx512", offers_amx_bf16, amx_peak::multiply_add_loop},
    MatrixUnit{"amx", DType::fp32, "avx512", offers_amx_bf16, amx_fp32_loop},
    MatrixUnit{"amx", DType::fp16, "avx512", offers_amx_bf16, amx_fp16_loop},
    MatrixUnit{"avx512-bf16", DType::bf16, "avx512", offers_avx512_bf16,
               avx512_bf16_peak::multiply_add_loop},
    MatrixUnit{"amx", DType::int8, "avx512", offers_amx_int8, amx_int8::multiply_add_loop},
    MatrixUnit{"avx512-vnni", DType::int8, "avx512", offers_avx512_vnni,
               avx512_vnni::multiply_add_loop},
    MatrixUnit{"avx-vnni", DType::int8, "avx2", offers_avx_vnni, avx_vnni::multiply_add_loop},
    MatrixUnit{"avx2", DType::int8, "avx2", offers_avx2, avx2_int8::multiply_add_loop},
#elif defined(__aarch64__)
    MatrixUnit{"bfmmla", DType::bf16, "neon", offers_bfmmla, bfmmla_peak::multiply_add_loop},
    MatrixUnit{"smmla", DType::int8, "neon", offers_neon_i8mm, neon_i8mm::multiply_add_loop},
    MatrixUnit{"sdot", DType::int8, "neon", offers_neon_dot, neon_dot::multiply_add_loop},
#endif
    MatrixUnit{"scalar", DType::int8, "scalar", offered_always, scalar_int8::multiply_add_loop}};

}  // namespace

std::span<const MatrixUnit> matrix_units() {
  return kUnits;
}

}  // namespace strobe::cpu
