#pragma once
// Hopper's unit that copies boxes of tensors between global and shared memory, and adds to sums in
// global memory. What lies outside of the tensor is zero where it is read and left out where it is
// written.

#include "device/basics.cuh"

namespace strobe::cuda {

/// A tensor and the box that is copied of it, as the driver describes them to the unit. Must be a
/// __grid_constant__ parameter of the kernel.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

/// Where a box begins. The innermost axis comes first.
template <int axes>
struct BoxAt {
  int at[axes];
};
using BoxOrigin = BoxAt<4>;

namespace ptx {

/// How long what is read should stay in the second level cache, as createpolicy writes it.
enum class CachePolicy : unsigned long long {
  evict_first = 0x12F0000000000000ULL,
  evict_last = 0x14F0000000000000ULL,
};

STROBE_DEVICE void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Starts to load a box; its bytes count on the barrier.
STROBE_DEVICE void load_box(Word to, const TensorMap& map, const BoxOrigin& origin, Word barrier,
                            CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(origin.at[0]), "r"(origin.at[1]), "r"(origin.at[2]),
      "r"(origin.at[3]), "l"(static_cast<unsigned long long>(policy))
      : "memory");
}

STROBE_DEVICE void load_box(Word to, const TensorMap& map, const BoxAt<5>& origin, Word barrier,
                            CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(origin.at[0]), "r"(origin.at[1]), "r"(origin.at[2]),
      "r"(origin.at[3]), "r"(origin.at[4]), "l"(static_cast<unsigned long long>(policy))
      : "memory");
}

/// Starts to store a box, as part of this thread's open group.
STROBE_DEVICE void store_box(const TensorMap& map, const BoxOrigin& origin, Word from) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
          &map),
      "r"(from), "r"(origin.at[0]), "r"(origin.at[1]), "r"(origin.at[2]), "r"(origin.at[3])
      : "memory");
}

/// Starts to add floats to as many in global memory, as part of this thread's open group. Both
/// begin at multiples of 16 bytes, and there are a multiple of 16. What many add to the same place
/// is added in whatever order it comes.
STROBE_DEVICE void add_floats(float* to, Word from, int bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
      "r"(from), "r"(bytes)
      : "memory");
}

/// Ends a group of stores.
STROBE_DEVICE void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until this thread's groups have read their shared memory, which may then be written again.
STROBE_DEVICE void wait_until_stores_have_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/// Waits until this thread's groups have been written.
STROBE_DEVICE void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// Shows what this thread has written to shared memory to the units that read it on their own, for
/// copies and for matrix products. Others must still be told, by a barrier.
STROBE_DEVICE void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace ptx
}  // namespace strobe::cuda
