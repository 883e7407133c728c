#pragma once

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

inline void expect_chunk(const void* at) {
  if (reinterpret_cast<std::uintptr_t>(at) % sizeof(uint4) != 0) {
    emulated::Block::current->fail("a chunk is at no multiple of 16 bytes");
  }
}

inline uint4 load_global_chunk(const void* from) {
  expect_chunk(from);
  return *static_cast<const uint4*>(from);
}

inline void store_global_chunk(void* to, uint4 value) {
  expect_chunk(to);
  *static_cast<uint4*>(to) = value;
}
inline void store_global_chunk_if(bool wanted, void* to, uint4 value) {
  if (wanted) store_global_chunk(to, value);
}

}  // namespace strobe::cuda::ptx
