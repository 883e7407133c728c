#include "device/mask.cuh"

#include <gtest/gtest.h>

namespace strobe::cuda {
namespace {

bool operator==(const Blocks& a, const Blocks& b) {
  return a.begin == b.begin && a.end == b.end && a.full_begin == b.full_begin &&
         a.full_end == b.full_end;
}

/// Whether what is counted with 32 bits is the same.
template <bool left_limited, bool right_limited>
void expect_same(Wide left, Wide right, int length_q, int length_k) {
  const WindowMask<left_limited, right_limited> wide = {left, right, length_q, length_k};
  const WindowMask<left_limited, right_limited, int> narrow = {
      static_cast<int>(left), static_cast<int>(right), length_q, length_k};
  for (const int query : {0, 1, length_q / 2, length_q - 1, length_q + 127}) {
    EXPECT_EQ(narrow.visible(query).begin, wide.visible(query).begin) << query;
    EXPECT_EQ(narrow.visible(query).end, wide.visible(query).end) << query;
    EXPECT_TRUE(narrow.template blocks<128>(query, query + 64) ==
                wide.template blocks<128>(query, query + 64))
        << query;
  }
  for (const int key : {0, 128, length_k / 2, length_k - 1}) {
    EXPECT_TRUE(
        (narrow.template query_blocks<64, 128>(key) == wide.template query_blocks<64, 128>(key)))
        << key;
  }
}

TEST(WindowMask, CountsWith32BitsWhatItCountsWith64) {
  constexpr int kMost = (1 << 29) - 1;
  constexpr Wide kWidest = Wide{1} << 30;
  for (const int length_q : {1, 63, 512, kMost}) {
    for (const int length_k : {1, 100, 512, kMost}) {
      for (const Wide limit : {Wide{0}, Wide{7}, Wide{512}, Wide{kMost}, kWidest}) {
        SCOPED_TRACE(testing::Message() << length_q << ", " << length_k << ", " << limit);
        expect_same<true, false>(limit, 0, length_q, length_k);
        expect_same<false, true>(0, limit, length_q, length_k);
        expect_same<true, true>(limit, kWidest - limit, length_q, length_k);
      }
    }
  }
}

TEST(WindowMask, ShowsAllToWhomItsWidestLimitsLeaveAll) {
  constexpr int kMost = (1 << 29) - 1;
  constexpr int kWidest = 1 << 30;
  const WindowMask<true, true, int> mask = {kWidest, kWidest, kMost, kMost};
  for (const int query : {0, kMost / 2, kMost - 1}) {
    EXPECT_EQ(mask.visible(query).begin, 0);
    EXPECT_EQ(mask.visible(query).end, kMost);
  }
}

}  // namespace
}  // namespace strobe::cuda
