#pragma once

#include <cstdint>
#include <string>
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

/// FLOP/s of this machine's fastest multiply-add of operands of this type, summed in fp32, with
/// the operands in registers: the roof that results are held against. fp16 and bf16 are multiplied
/// as fp32 where there is no instruction for them. Takes about 50 ms.
STROBE_API double measure_fma_rate(DType dtype, int threads);

/// Bytes moved per second, reads and writes together, when each thread copies `bytes_per_thread`
/// from one buffer to another again and again. Takes about 100 ms.
STROBE_API double measure_copy_rate(std::int64_t bytes_per_thread, int threads);

/// "0.1.0"
STROBE_API const char* version();

}  // namespace strobe
