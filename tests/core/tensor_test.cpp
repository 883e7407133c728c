#include "strobe/tensor.h"

#include <gtest/gtest.h>

#include <climits>
#include <limits>
#include <set>
#include <vector>

#include "strobe/dropout.h"
#include "strobe/error.h"

namespace strobe {
namespace {

TEST(TensorView, ContiguousSelectDescribe) {
  float data[24] = {};
  const auto view = TensorView::contiguous(data, DType::fp32, {2, 3, 4});
  EXPECT_EQ(view.strides[0], 12);
  EXPECT_EQ(view.elements(), 24);
  EXPECT_EQ(view.describe(), "fp32[2, 3, 4]");
  const auto row = view.select(1, 2);
  EXPECT_EQ(row.rank, 2);
  EXPECT_EQ(row.data, data + 8);
  EXPECT_EQ(row.strides[0], 12);
  EXPECT_THROW(view.select(3, 0), InvalidArgument);
  EXPECT_THROW(view.select(1, 3), InvalidArgument);
}

TEST(TensorView, OfNoElementsEveryPartIsAtItsBeginning) {
  float nothing = 0;
  auto view = TensorView::contiguous(&nothing, DType::fp32, {2, 0, 3, 4});
  view.strides[0] = view.strides[2] = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(view.select(0, 1).data, &nothing);
  EXPECT_EQ(view.select(2, 2).data, &nothing);
}

TEST(TensorView, PackedPartsInterleaveWithoutOverlap) {
  float data[2 * 5 * 3 * 2 * 4] = {};
  const auto qkv = TensorView::contiguous(data, DType::fp32, {2, 5, 3, 2, 4});
  const auto [q, k, v] = split_qkv(qkv);
  EXPECT_EQ(q.describe(), "fp32[2, 5, 2, 4]");
  EXPECT_EQ(k.data, data + 8);
  EXPECT_FALSE(overlap(q, k));
  EXPECT_FALSE(overlap(k, v));
  EXPECT_TRUE(overlap(q, qkv));
  EXPECT_THROW(split_kv(qkv), InvalidArgument);
}

/// The bytes a view touches, by going there.
std::multiset<std::intptr_t> bytes_of(const TensorView& view) {
  std::multiset<std::intptr_t> touched;
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  for (std::int64_t i = 0; i < view.shape[0]; ++i) {
    for (std::int64_t j = 0; j < view.shape[1]; ++j) {
      for (std::int64_t k = 0; k < view.shape[2]; ++k) {
        const std::int64_t element =
            i * view.strides[0] + j * view.strides[1] + k * view.strides[2];
        for (std::int64_t byte = 0; byte < size; ++byte) {
          touched.insert(reinterpret_cast<std::intptr_t>(view.data) + element * size + byte);
        }
      }
    }
  }
  return touched;
}

TensorView random_view(std::vector<std::byte>& memory, std::uint32_t number) {
  const auto shape = philox({number, 0, 0, 0}, {3, 4});
  const auto strides = philox({number, 1, 0, 0}, {3, 4});
  TensorView view;
  view.dtype = shape[3] % 2 == 0 ? DType::fp32 : DType::bf16;
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  view.data = memory.data() + memory.size() / 2 + (shape[3] / 2) % 64 * 2 / size * size;
  view.rank = 3;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    view.shape[axis] = 1 + shape[axis] % 4;
    view.strides[axis] = static_cast<std::int64_t>(strides[axis] % 30) - 6;
  }
  return view;
}

TEST(TensorView, OverlapAgreesWithGoingThere) {
  std::vector<std::byte> memory(4096);
  int overlapping = 0;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const auto a = random_view(memory, 2 * i);
    const auto b = random_view(memory, 2 * i + 1);
    const auto bytes_a = bytes_of(a);
    const auto bytes_b = bytes_of(b);
    bool expected = false;
    for (const auto byte : bytes_a) expected = expected || bytes_b.contains(byte);
    EXPECT_EQ(overlap(a, b), expected) << "pair " << i;
    overlapping += expected ? 1 : 0;
    const std::set<std::intptr_t> distinct(bytes_a.begin(), bytes_a.end());
    EXPECT_EQ(overlaps_itself(a), distinct.size() != bytes_a.size()) << "view " << 2 * i;
  }
  EXPECT_GT(overlapping, 500);
  EXPECT_LT(overlapping, 2500);
}

TEST(TensorView, EmptyViewsAndOtherDevicesDoNotOverlap) {
  float data[4] = {};
  const auto whole = TensorView::contiguous(data, DType::fp32, {4});
  EXPECT_FALSE(overlap(whole, TensorView::contiguous(data, DType::fp32, {0})));
  EXPECT_FALSE(
      overlap(whole, TensorView::contiguous(data, DType::fp32, {4}, {.kind = Device::Kind::cuda})));
  EXPECT_FALSE(overlap(whole, TensorView{}));
  auto negative = whole;
  negative.shape[0] = INT64_MIN;
  EXPECT_FALSE(overlap(whole, negative));
  EXPECT_FALSE(overlaps_itself(negative));
}

TEST(TensorView, TheIndexOfADeviceTellsGpusApartAndNoCpus) {
  float data[4] = {};
  const auto on = [&](Device device) {
    return TensorView::contiguous(data, DType::fp32, {4}, device);
  };
  EXPECT_TRUE(overlap(on({Device::Kind::cpu, 0}), on({Device::Kind::cpu, 1})));
  EXPECT_FALSE(overlap(on({Device::Kind::cuda, 0}), on({Device::Kind::cuda, 1})));
  EXPECT_TRUE(overlap(on({Device::Kind::cuda, 1}), on({Device::Kind::cuda, 1})));
}

TEST(TensorView, HostileStridesEndInABoundedAnswer) {
  float data[4] = {};
  auto a = TensorView::contiguous(data, DType::fp32, {1 << 20, 1 << 20, 1 << 20, 4});
  auto b = a;
  a.strides = {7, 5, 3, 1, 0};
  b.strides = {11, 9, 4, 1, 0};
  EXPECT_TRUE(overlap(a, b));
  a.strides = {INT64_MAX, INT64_MIN, 3, 1, 0};
  static_cast<void>(overlap(a, b));
  static_cast<void>(overlaps_itself(a));
}

TEST(TensorView, StridesThatAreNeverSteppedByMayBeAnything) {
  float data[8] = {};
  auto a = TensorView::contiguous(data, DType::fp32, {1, 2, 1, 3});
  a.strides = {INT64_MIN, 5, INT64_MAX, 1, 0};
  const auto b = TensorView::contiguous(data + 3, DType::fp32, {2});
  EXPECT_FALSE(overlap(a, b));
  EXPECT_FALSE(overlap(b, a));
  EXPECT_TRUE(overlap(a, a));
  EXPECT_FALSE(overlaps_itself(a));
  const TensorView plain = a.with_plain_strides();
  EXPECT_EQ(plain.data, a.data);
  EXPECT_EQ(plain.shape, a.shape);
  EXPECT_EQ(plain.strides, (std::array<std::int64_t, 5>{10, 5, 3, 1, 0}));
  a.shape = {1, INT64_MAX, 0, 3, 1};  // a tensor that a call does not use is not checked
  a.rank = INT_MAX;
  EXPECT_EQ(a.with_plain_strides().strides[1], 5);
}

}  // namespace
}  // namespace strobe
