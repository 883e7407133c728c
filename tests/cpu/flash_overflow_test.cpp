// Offsets beyond 32 bits, one axis at a time: tiny tensors spread over a vast, mostly untouched
// address range.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "strobe/registry.h"
#include "support/tensors.h"

namespace strobe {
namespace {

/// Address space without memory behind it until it is touched.
class Range {
 public:
  explicit Range(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() {
    if (given()) munmap(data_, bytes_);
  }
  bool given() const { return data_ != MAP_FAILED; }
  void* data() const { return data_; }

 private:
  std::size_t bytes_;
  void* data_;
};

float* element(const TensorView& view, std::int64_t b, std::int64_t s, std::int64_t h,
               std::int64_t d) {
  return static_cast<float*>(view.data) + b * view.strides[0] + s * view.strides[1] +
         h * view.strides[2] + d;
}

void copy(const TensorView& from, const TensorView& to) {
  for (std::int64_t b = 0; b < from.shape[0]; ++b) {
    for (std::int64_t s = 0; s < from.shape[1]; ++s) {
      for (std::int64_t h = 0; h < from.shape[2]; ++h) {
        for (std::int64_t d = 0; d < from.shape[3]; ++d)
          *element(to, b, s, h, d) = *element(from, b, s, h, d);
      }
    }
  }
}

class FlashOverflow : public testing::TestWithParam<int> {};

TEST_P(FlashOverflow, HugeStrides) {
  const Problem problem = Problem::parse("b2 s3 h2 d4 fp32 causal");
  test::Operands dense = test::make_operands(problem, 1);
  const Implementation& flash = Registry::instance().find("flash");
  test::run(flash, problem, dense.views());

  // 2^31 + 5 elements from one step of the axis to the next: 8 GiB, past 32 bits as bytes and as
  // elements.
  constexpr std::int64_t kStride = (std::int64_t{1} << 31) + 5;
  constexpr std::size_t kBytes = (3 * static_cast<std::size_t>(kStride)) * sizeof(float);
  const Range q(kBytes), k(kBytes), v(kBytes), out(kBytes);
  if (!q.given() || !k.given() || !v.given() || !out.given())
    GTEST_SKIP() << "no address space to be had";
  Tensors spread = dense.views();
  const Tensors source = dense.views();
  TensorView* const views[] = {&spread.q, &spread.k, &spread.v, &spread.out};
  const Range* const ranges[] = {&q, &k, &v, &out};
  for (int i = 0; i < 4; ++i) {
    views[i]->data = ranges[i]->data();
    views[i]->strides[static_cast<std::size_t>(GetParam())] = kStride;
  }
  copy(source.q, spread.q);
  copy(source.k, spread.k);
  copy(source.v, spread.v);
  test::run(flash, problem, spread);
  test::Tensor back(DType::fp32, {2, 3, 2, 4});
  copy(spread.out, back.view());
  EXPECT_EQ(back.bytes(), dense.out.bytes());
}

INSTANTIATE_TEST_SUITE_P(Axes, FlashOverflow, testing::Values(0, 1, 2));

// More work items than 32 bits count, nearly all of them empty: nothing must be lost or crash.
TEST(FlashOverflowVarlen, TotalsNearTheLimit) {
  Problem problem = Problem::parse("lq2,3 lk2,3 h2 d4 fp32");
  problem.seqlen_q = 4000;
  problem.seqlen_k = 2'000'000'000;
  test::Operands operands = test::make_operands(problem, 1);
  test::Operands expected = test::make_operands(Problem::parse("lq2,3 lk2,3 h2 d4 fp32"), 1);
  test::run(Registry::instance().find("flash"), problem, operands.views());
  test::run(Registry::instance().find("flash"), Problem::parse("lq2,3 lk2,3 h2 d4 fp32"),
            expected.views());
  EXPECT_EQ(operands.out.bytes(), expected.out.bytes());
}

}  // namespace
}  // namespace strobe
