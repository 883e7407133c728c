#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/dtype.h"
#include "strobe/export.h"
#include "strobe/threads.h"

namespace strobe {

/// This machine as the CPU backend sees it.
struct Machine {
  std::string architecture{};       ///< "x86_64", "aarch64"
  std::string cpu{};                ///< the vendor's name for it
  int cores = 1;                    ///< for this process, and so the threads it uses by default
  std::string cores_reason{};       ///< what set that number
  std::int64_t cache_bytes = 0;     ///< last-level cache; 0 where the system does not tell
  std::int64_t memory_bytes = 0;    ///< physical memory
  std::vector<std::string> isas{};  ///< CPU kernels this machine can run, best first
  std::string isa{};                ///< the one in use: the best, or STROBE_CPU_ISA
};

STROBE_API Machine machine();

/// A way to multiply operands of a type and add up the products, in fp32, or int32 for integers.
struct MultiplyAdd {
  std::string_view name{};  ///< "amx", "avx512-vnni"; "avx512" is its fused multiply-add
  DType dtype = DType::fp32;
};

/// Those that this machine has, and that go with the kernels in use.
STROBE_API std::vector<MultiplyAdd> multiply_adds();

/// Operations per second of one of them, two for each product, with the operands in registers.
/// Throws InvalidArgument if it is not among multiply_adds(). Takes about 50 ms.
STROBE_API double measure_multiply_add(const MultiplyAdd& which, int threads);

/// That of the fastest for this type: the roof that results are held against. fp16 and bf16 are
/// multiplied as fp32 where there is no instruction for them; 0 if there is no way at all. Takes
/// about 50 ms for each way.
STROBE_API double measure_fma_rate(DType dtype, int threads);

/// Bytes moved per second, reads and writes together, when each thread copies `bytes_per_thread`
/// from one buffer to another again and again. Takes about 100 ms.
STROBE_API double measure_copy_rate(std::int64_t bytes_per_thread, int threads);

/// "0.1.0"
STROBE_API const char* version();

}  // namespace strobe
