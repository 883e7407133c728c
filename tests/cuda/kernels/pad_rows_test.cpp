#include "cuda/kernels/pad_rows/pad_rows.h"

#include <future>
#include <random>
#include <vector>

#include "cuda/driver/memory.h"
#include "cuda/driver/stream.h"
#include "cuda/gpu.h"
#include "strobe/error.h"

namespace strobe::cuda::pad_rows {
namespace {

class PadRows : public test::OnGpuWithCompiler {
 protected:
  /// Pads a tensor at `first` elements into memory full of random numbers, looks at every element,
  /// cuts it again into other memory and looks whether that changed exactly the tensor's elements.
  template <class Element>
  void check(DType dtype, std::array<std::int64_t, 4> shape, std::array<std::int64_t, 4> strides,
             std::int64_t first, std::int64_t memory_elements, std::int64_t padded_dim) const;
};

template <class Element>
void PadRows::check(DType dtype, std::array<std::int64_t, 4> shape,
                    std::array<std::int64_t, 4> strides, std::int64_t first,
                    std::int64_t memory_elements, std::int64_t padded_dim) const {
  std::vector<Element> memory(static_cast<std::size_t>(memory_elements));
  std::mt19937 random(7);
  for (Element& element : memory) element = static_cast<Element>(random());
  const std::size_t bytes = memory.size() * sizeof(Element);
  const driver::Stream stream(device());
  const driver::DeviceMemory from(device(), bytes);
  const driver::DeviceMemory to(device(), bytes);
  const auto view_of = [&](const driver::DeviceMemory& there) {
    TensorView view{.data = static_cast<Element*>(there.data()) + first, .dtype = dtype, .rank = 4};
    std::copy(shape.begin(), shape.end(), view.shape.begin());
    std::copy(strides.begin(), strides.end(), view.strides.begin());
    return view;
  };
  std::vector<Element> padded(
      static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * padded_dim));
  const std::size_t dense_bytes = padded.size() * sizeof(Element);
  const driver::DeviceMemory dense(device(), dense_bytes);
  std::vector<Element> result(memory.size());

  const RowPadder padder(device());
  const driver::ContextScope scope(device());
  driver::copy_async(from.data(), memory.data(), bytes, stream.get());
  driver::fill_async(dense.data(), 0xEE, dense_bytes, stream.get());
  driver::fill_async(to.data(), 0x55, bytes, stream.get());
  padder.pad(view_of(from), dense.data(), padded_dim, stream.get());
  padder.cut(dense.data(), padded_dim, view_of(to), stream.get());
  driver::copy_async(padded.data(), dense.data(), dense_bytes, stream.get());
  driver::copy_async(result.data(), to.data(), bytes, stream.get());
  stream.synchronize();

  std::vector<Element> expected(memory.size());
  std::fill_n(reinterpret_cast<unsigned char*>(expected.data()), bytes, 0x55);
  std::size_t at = 0;
  std::size_t wrong = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t r = 0; r < shape[1]; ++r) {
      for (std::int64_t h = 0; h < shape[2]; ++h) {
        for (std::int64_t d = 0; d < padded_dim; ++d, ++at) {
          const auto source = static_cast<std::size_t>(first + b * strides[0] + r * strides[1] +
                                                       h * strides[2] + d);
          const Element wanted = d < shape[3] ? memory[source] : Element{0};
          wrong += padded[at] != wanted ? 1 : 0;
          if (d < shape[3]) expected[source] = memory[source];
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0u) << "of " << padded.size() << " padded elements";
  EXPECT_EQ(result, expected);
}

TEST_F(PadRows, TakesRowsThatStartAnywhere) {
  check<std::uint16_t>(DType::bf16, {2, 37, 3, 129}, {37 * 400, 400, 131, 1}, 1, 30'000, 136);
}

TEST_F(PadRows, TakesEveryUnit) {
  for (const std::int64_t dim : {1, 2, 4, 8, 60, 64, 66, 129}) {
    check<std::uint16_t>(DType::fp16, {1, 50, 2, dim}, {0, 2 * dim, dim, 1}, 0, 50 * 2 * dim,
                         (dim + 15) / 8 * 8);
    check<std::uint32_t>(DType::fp32, {1, 50, 2, dim}, {0, 2 * dim, dim, 1}, 0, 50 * 2 * dim,
                         (dim + 7) / 4 * 4);
  }
}

TEST_F(PadRows, TakesHeadsBeforeRowsAndRowsBackwards) {
  check<std::uint32_t>(DType::fp32, {2, 33, 4, 20}, {4 * 33 * 20, 20, 33 * 20, 1}, 0,
                       2 * 4 * 33 * 20, 32);
  check<std::uint16_t>(DType::bf16, {1, 33, 2, 20}, {0, -40, 20, 1}, 32 * 40, 33 * 40, 32);
}

TEST_F(PadRows, TakesManyHeadsAndNothing) {
  check<std::uint16_t>(DType::bf16, {1, 5, 64, 120}, {0, 64 * 120, 120, 1}, 0, 5 * 64 * 120, 128);
  check<std::uint16_t>(DType::bf16, {2, 0, 4, 64}, {0, 256, 64, 1}, 0, 64, 64);
}

TEST_F(PadRows, RefusesWhatItCannotDo) {
  const driver::DeviceMemory memory(device(), 4096);
  const RowPadder padder(device());
  const auto view = TensorView::contiguous(memory.data(), DType::bf16, {1, 2, 2, 20});
  EXPECT_THROW(padder.pad(view, memory.data(), 16, nullptr), InvalidArgument) << "shorter";
  EXPECT_THROW(padder.pad(view, memory.data(), 21, nullptr), InvalidArgument) << "not 16 bytes";
  const auto bytes = TensorView::contiguous(memory.data(), DType::int8, {1, 2, 2, 20});
  EXPECT_THROW(padder.pad(bytes, memory.data(), 32, nullptr), InvalidArgument);
}

TEST_F(PadRows, IsLoadedOnceHoweverManyAsk) {
  const auto kernel = configurations(jit::Architecture::of(device())).front();
  std::vector<std::future<std::shared_ptr<const jit::LoadedKernel>>> asked;
  for (int i = 0; i < 8; ++i) {
    asked.push_back(std::async(std::launch::async, [&] { return jit::load(device(), kernel); }));
  }
  const auto first = asked[0].get();
  for (int i = 1; i < 8; ++i) EXPECT_EQ(asked[static_cast<std::size_t>(i)].get(), first);
  const driver::ContextScope scope(device());
  EXPECT_EQ(first->function("pad_rows").local_bytes(), 0);
  for (const jit::Resources& resources : first->resources())
    EXPECT_EQ(first->function(resources.entry).registers(), resources.registers);
}

}  // namespace
}  // namespace strobe::cuda::pad_rows
