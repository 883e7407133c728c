// In which order the tiles of packed sequences are handed out: those of the sequences with the most
// keys first, so that the shortest fill the gaps at the end. Lengths are known on the device alone.
// By one thread block.

#include "config.cuh"
#include "device/basics.cuh"
#include "kernels/hopper_forward/params.cuh"

namespace strobe::cuda {
namespace {

/// Sequences are sorted by classes of length alone, four for each power of two.
constexpr int kClasses = 128;

/// The longest have class 0. The float's leading bits are its exponent and two more.
STROBE_DEVICE int class_of(int keys) {
  const float length = static_cast<float>(larger(keys, 1));
  const int quarter = static_cast<int>((__float_as_uint(length) - __float_as_uint(1.0F)) >> 21);
  return kClasses - 1 - quarter;
}

/// Sequences and their tiles, counted in one word so that both are added at once.
class Count {
 public:
  using Bits = unsigned long long;

  STROBE_DEVICE explicit Count(Bits bits) : bits_(bits) {}
  STROBE_DEVICE static Count of(Word tiles) { return Count((Bits{1} << 32) + tiles); }

  STROBE_DEVICE Bits bits() const { return bits_; }
  STROBE_DEVICE Word sequences() const { return static_cast<Word>(bits_ >> 32); }
  STROBE_DEVICE Word tiles() const { return static_cast<Word>(bits_); }

 private:
  Bits bits_;
};

/// Calls with each sequence of this thread, its class and what it counts.
template <class Body>
STROBE_DEVICE void each_sequence(const HopperOrderParams& params, Body body) {
  for (int i = static_cast<int>(threadIdx.x); i < params.sequences; i += config::kThreads) {
    const int queries = params.cu_seqlens_q[i + 1] - params.cu_seqlens_q[i];
    const int keys = params.cu_seqlens_k[i + 1] - params.cu_seqlens_k[i];
    const int tiles = ceil_div(queries, params.block_queries) * params.heads;
    body(i, class_of(keys), Count::of(static_cast<Word>(tiles)));
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::kThreads)
    hopper_order(const __grid_constant__ HopperOrderParams params) {
  static_assert(config::kThreads >= kClasses);
  __shared__ Count::Bits counts[kClasses];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kClasses) counts[thread] = 0;
  __syncthreads();
  each_sequence(params, [&](int, int length_class, Count count) {
    atomicAdd(&counts[length_class], count.bits());
  });
  __syncthreads();

  Count::Bits before = 0;  // of all classes of longer ones
  for (int i = 0; i < smaller(thread, kClasses); ++i) before += counts[i];
  __syncthreads();
  if (thread < kClasses) counts[thread] = before;
  if (thread == kClasses) {
    params.order[params.sequences] = {Count(before).tiles(), params.sequences};
    *params.next_tile = 0;
  }
  __syncthreads();
  each_sequence(params, [&](int sequence, int length_class, Count count) {
    const Count place(atomicAdd(&counts[length_class], count.bits()));
    params.order[place.sequences()] = {place.tiles(), sequence};
  });
}

}  // namespace strobe::cuda
