#include "cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/text.h"
#include "cpu/matrix_units.h"
#include "strobe/error.h"

namespace strobe::cpu {

// Each is defined by its translation unit under isa/, compiled with that ISA's flags.
namespace scalar {
extern const IsaKernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const IsaKernels kKernels;
}
namespace avx512 {
extern const IsaKernels kKernels;
}
namespace avx512_bf16 {
extern const IsaKernels kKernels;
}
namespace amx {
extern const IsaKernels kKernels;
}
#elif defined(__aarch64__)
namespace bfmmla {
extern const IsaKernels kKernels;
}
namespace neon {
extern const IsaKernels kKernels;
}
#endif

namespace {

bool always() {
  return true;
}

/// Whether this machine has the matrix unit of that name for bf16.
[[maybe_unused]] bool runs_here(std::string_view unit) {
  const auto units = matrix_units();
  return std::any_of(units.begin(), units.end(), [&](const MatrixUnit& known) {
    return known.name == unit && known.dtype == DType::bf16 && known.runs_here();
  });
}

#if defined(__x86_64__)
// The compiler's builtin asks CPUID and, for the register state, XCR0. Clang's does not know F16C
// by name before version 15, so that bit is read here.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && has_avx2();
}
bool has_avx512_bf16() {
  return has_avx512() && runs_here("avx512-bf16");
}
bool has_amx() {
  return has_avx512_bf16() && runs_here("amx");
}
// AVX512-BF16 comes after widening to fp32: on Sapphire Rapids, where it was timed, its dot product
// takes as long as four multiply-adds and does the work of two.
constexpr std::array kIsas = {Isa{&amx::kKernels, has_amx}, Isa{&avx512::kKernels, has_avx512},
                              Isa{&avx512_bf16::kKernels, has_avx512_bf16},
                              Isa{&avx2::kKernels, has_avx2}, Isa{&scalar::kKernels, always}};
#elif defined(__aarch64__)
bool has_bfmmla() {
  return runs_here("bfmmla");
}
constexpr std::array kIsas = {Isa{&bfmmla::kKernels, has_bfmmla}, Isa{&neon::kKernels, always},
                              Isa{&scalar::kKernels, always}};
#else
constexpr std::array kIsas = {Isa{&scalar::kKernels, always}};
#endif

const IsaKernels& named(std::string_view wanted) {
  std::vector<std::string_view> names;
  for (const auto& isa : kIsas) {
    names.emplace_back(isa.kernels->name);
    if (isa.kernels->name != wanted) continue;
    if (isa.runs_here()) return *isa.kernels;
    throw Unsupported("this CPU", {concat("no ", wanted, ", which STROBE_CPU_ISA asks for")});
  }
  throw InvalidArgument("STROBE_CPU_ISA",
                        concat("is '", wanted, "', allowed is one of ", joined(names, ", ")));
}

}  // namespace

std::span<const Isa> isas() {
  return kIsas;
}

const IsaKernels& active_isa() {
  if (const char* wanted = std::getenv("STROBE_CPU_ISA"); wanted != nullptr && *wanted != '\0') {
    return named(wanted);
  }
  for (const auto& isa : kIsas) {
    if (isa.runs_here()) return *isa.kernels;
  }
  return scalar::kKernels;
}

}  // namespace strobe::cpu
