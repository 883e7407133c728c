#include "strobe/dropout.h"

#include <gtest/gtest.h>

#include <vector>

#include "strobe/error.h"

namespace strobe {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers that the authors of Philox publish.
TEST(Dropout, PhiloxKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Dropout, ThresholdCoversTheRange) {
  EXPECT_EQ(dropout_threshold(0), 0U);
  EXPECT_EQ(dropout_threshold(0.5), 0x80000000U);
  EXPECT_EQ(dropout_threshold(1.0 - 1e-17), 0xFFFFFFFFU);
}

TEST(Dropout, ExportedMaskIsWhatKeepsSays) {
  const Problem problem{
      .batch = 2, .seqlen_q = 33, .seqlen_k = 61, .heads = 3, .dropout = 0.17, .dropout_seed = 5};
  std::vector<std::uint8_t> mask(2 * 3 * 33 * 61, 9);
  export_dropout_mask(problem, TensorView::contiguous(mask.data(), DType::uint8, {2, 3, 33, 61}));
  std::size_t at = 0;
  std::size_t kept = 0;
  for (int b = 0; b < 2; ++b) {
    for (int h = 0; h < 3; ++h) {
      for (int i = 0; i < 33; ++i) {
        for (int j = 0; j < 61; ++j, ++at) {
          ASSERT_EQ(mask[at], dropout_keeps(problem, b, h, i, j) ? 1 : 0);
          kept += mask[at];
        }
      }
    }
  }
  // 12078 draws at 0.83: five standard deviations are 0.017.
  EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(mask.size()), 0.83, 0.017);
}

TEST(Dropout, ExportChecksTheTensor) {
  const Problem problem{.seqlen_q = 2, .dropout = 0.5};
  std::vector<std::uint8_t> mask(4);
  EXPECT_THROW(export_dropout_mask(problem, {}), InvalidArgument);
  EXPECT_THROW(
      export_dropout_mask(problem, TensorView::contiguous(mask.data(), DType::uint8, {1, 1, 4})),
      InvalidArgument);
  EXPECT_THROW(
      export_dropout_mask(problem, TensorView::contiguous(mask.data(), DType::uint8, {1, 1, 2, 2},
                                                          {.kind = Device::Kind::cuda})),
      InvalidArgument)
      << "the host writes it";
}

}  // namespace
}  // namespace strobe
