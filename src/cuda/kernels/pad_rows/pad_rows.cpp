#include "cuda/kernels/pad_rows/pad_rows.h"

#include <algorithm>
#include <limits>

#include "core/text.h"
#include "cuda/driver/launch.h"
#include "cuda/kernels/configuration.h"
#include "cuda/kernels/operands.h"
#include "cuda/kernels/pad_rows/params.cuh"
#include "strobe/error.h"

namespace strobe::cuda::pad_rows {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 3;  // of a multiprocessor

jit::KernelDescription description() {
  return {.name = "pad_rows",
          .source = "kernels/pad_rows/pad_rows.cu",
          .entries = {"pad_rows", "cut_rows"},
          .constants = {{"kBlocksPerMultiprocessor", kBlocks}},
          .threads = kThreads,
          .max_registers = registers_of_a_thread(kThreads, kBlocks)};
}

/// The tensor as [batch, rows, heads, dim].
struct Rows {
  std::int64_t batch, rows, heads, dim;
  std::int64_t batch_stride, row_stride, head_stride;  // in bytes
};

Rows rows_of(const TensorView& tensor) {
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  if (tensor.rank < 3 || tensor.rank > 4 || (bytes != 2 && bytes != 4) ||
      tensor.strides[static_cast<std::size_t>(tensor.rank - 1)] != 1) {
    throw InvalidArgument("tensor", concat("is ", tensor.describe(),
                                           ", allowed is rank 3 or 4, 2 or 4 bytes an element and "
                                           "stride 1 on the last axis"));
  }
  const auto axis = [&](int from_last) {
    return static_cast<std::size_t>(tensor.rank - 1 - from_last);
  };
  const bool batched = tensor.rank == 4;
  return {.batch = batched ? tensor.shape[0] : 1,
          .rows = tensor.shape[axis(2)],
          .heads = tensor.shape[axis(1)],
          .dim = tensor.shape[axis(0)],
          .batch_stride = batched ? tensor.strides[0] * bytes : 0,
          .row_stride = tensor.strides[axis(2)] * bytes,
          .head_stride = tensor.strides[axis(1)] * bytes};
}

Params params_of(const TensorView& tensor, const void* dense, std::int64_t padded_dim) {
  const Rows r = rows_of(tensor);
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  const std::int64_t padded_bytes = padded_dim * bytes;
  if (padded_dim < r.dim || padded_bytes % kChunkBytes != 0 ||
      r.heads * padded_bytes > std::numeric_limits<int>::max()) {
    throw InvalidArgument("padded_dim", concat("is ", padded_dim, ", allowed is from ", r.dim,
                                               " on, a multiple of 16 bytes, and all heads "
                                               "together less than 2 GB"));
  }
  return {.strided = static_cast<char*>(tensor.data),
          .strided_end = reinterpret_cast<char*>(end_of(tensor)),
          .dense = static_cast<char*>(const_cast<void*>(dense)),
          .batch_stride = r.batch_stride,
          .row_stride = r.row_stride,
          .head_stride = r.head_stride,
          .batch = r.batch,
          .rows = r.rows,
          .heads = static_cast<int>(r.heads),
          .row_bytes = static_cast<int>(r.dim * bytes),
          .dense_row_bytes = static_cast<int>(padded_bytes)};
}

void launch(const driver::Function& function, const Params& params, unsigned max_blocks,
            abi::Stream stream) {
  constexpr std::int64_t kMostBatches = 65535;
  constexpr std::int64_t kRun = std::int64_t{kThreads} * kChunksAtOnce;
  const std::int64_t chunks =
      params.rows * params.heads * (params.dense_row_bytes / kChunkBytes + 1);
  if (params.batch == 0 || params.rows == 0 || params.heads == 0) return;
  const std::int64_t batches = std::min<std::int64_t>(params.batch, kMostBatches);
  const std::int64_t most = std::max<std::int64_t>(1, max_blocks / batches);
  driver::launch(function,
                 {.grid = {.x = static_cast<unsigned>(
                               std::min<std::int64_t>((chunks + kRun - 1) / kRun, most)),
                           .y = static_cast<unsigned>(batches)},
                  .block = {.x = kThreads}},
                 stream, params);
}

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& /*any*/) {
  return {description()};
}

RowPadder::RowPadder(const driver::Device& device)
    : kernel_(jit::load(device, description())),
      pad_(kernel_->function("pad_rows")),
      cut_(kernel_->function("cut_rows")),
      max_blocks_(static_cast<unsigned>(device.multiprocessors()) * 32) {}

void RowPadder::pad(const TensorView& from, void* dense, std::int64_t padded_dim,
                    abi::Stream stream) const {
  launch(pad_, params_of(from, dense, padded_dim), max_blocks_, stream);
}

void RowPadder::cut(const void* dense, std::int64_t padded_dim, const TensorView& to,
                    abi::Stream stream) const {
  launch(cut_, params_of(to, dense, padded_dim), max_blocks_, stream);
}

}  // namespace strobe::cuda::pad_rows
