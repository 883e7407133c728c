#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "strobe/cuda.h"

namespace strobe::lab {

/// What the blocks that run at the same time share.
struct Multiprocessor {
  int threads = 0, blocks = 0;  ///< at most
  int registers = 65536;
  std::int64_t shared_bytes = 0;
};

/// By the names of architectures, "sm_90a". Throws InvalidArgument for one that is not known.
Multiprocessor multiprocessor_of(std::string_view architecture);

/// How many blocks of a kernel a multiprocessor holds.
struct Residency {
  int blocks = 0;
  double occupancy = 0;  ///< their threads, of those that there could be
  std::string limit{};   ///< what keeps one more from fitting: "registers"
};

Residency residency_of(const CompiledKernel& kernel, const Multiprocessor& multiprocessor);

}  // namespace strobe::lab
