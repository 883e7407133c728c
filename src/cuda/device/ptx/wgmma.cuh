#pragma once
// Hopper's matrix products by the four warps of a warpgroup:
//     sums[64 × n] = left[64 × 16] · right[16 × n], or += it
// They run on their own: between wgmma_fence() and the wait for their group nobody may touch their
// registers, nor write the shared memory they read. A warp has 16 of the rows, and of them a lane
// has what Accumulator<1, n / 8> says. Operands in shared memory are told by descriptors: see
// device/swizzled_tile.cuh.

#include "device/basics.cuh"

namespace strobe::cuda::ptx {

/// Orders what was done to registers before the products that come.
STROBE_DEVICE void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// Ends a group of products.
STROBE_DEVICE void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until all but the last `kPending` groups are done.
template <int kPending>
STROBE_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// Keeps the compiler from moving what is done to these registers across this point.
template <int kTiles>
STROBE_DEVICE void pin(float (&registers)[kTiles][4]) {
#pragma unroll
  for (int i = 0; i < kTiles * 4; ++i) asm volatile("" : "+f"(registers[i / 4][i % 4])::"memory");
}
template <int kTiles>
STROBE_DEVICE void pin(Word (&registers)[kTiles][4]) {
#pragma unroll
  for (int i = 0; i < kTiles * 4; ++i) asm volatile("" : "+r"(registers[i / 4][i % 4])::"memory");
}

/// What the operands are.
enum class HalfType { bf16, fp16 };

/// Which way the right operand lies in shared memory: its inner axis is contiguous, or the columns
/// of the product are.
enum class RightOrder { inner, columns };

// An instruction spells its registers out, so there is a function for each number of columns. First
// the registers of the sums, in text and as operands, 8 columns more each time.
#define STROBE_TEXT_8 "%0,%1,%2,%3"
#define STROBE_TEXT_16 STROBE_TEXT_8 ",%4,%5,%6,%7"
#define STROBE_TEXT_24 STROBE_TEXT_16 ",%8,%9,%10,%11"
#define STROBE_TEXT_32 STROBE_TEXT_24 ",%12,%13,%14,%15"
#define STROBE_TEXT_40 STROBE_TEXT_32 ",%16,%17,%18,%19"
#define STROBE_TEXT_48 STROBE_TEXT_40 ",%20,%21,%22,%23"
#define STROBE_TEXT_56 STROBE_TEXT_48 ",%24,%25,%26,%27"
#define STROBE_TEXT_64 STROBE_TEXT_56 ",%28,%29,%30,%31"
#define STROBE_TEXT_72 STROBE_TEXT_64 ",%32,%33,%34,%35"
#define STROBE_TEXT_80 STROBE_TEXT_72 ",%36,%37,%38,%39"
#define STROBE_TEXT_88 STROBE_TEXT_80 ",%40,%41,%42,%43"
#define STROBE_TEXT_96 STROBE_TEXT_88 ",%44,%45,%46,%47"
#define STROBE_TEXT_104 STROBE_TEXT_96 ",%48,%49,%50,%51"
#define STROBE_TEXT_112 STROBE_TEXT_104 ",%52,%53,%54,%55"
#define STROBE_TEXT_120 STROBE_TEXT_112 ",%56,%57,%58,%59"
#define STROBE_TEXT_128 STROBE_TEXT_120 ",%60,%61,%62,%63"
#define STROBE_TEXT_136 STROBE_TEXT_128 ",%64,%65,%66,%67"
#define STROBE_TEXT_144 STROBE_TEXT_136 ",%68,%69,%70,%71"
#define STROBE_TEXT_152 STROBE_TEXT_144 ",%72,%73,%74,%75"
#define STROBE_TEXT_160 STROBE_TEXT_152 ",%76,%77,%78,%79"
#define STROBE_TEXT_168 STROBE_TEXT_160 ",%80,%81,%82,%83"
#define STROBE_TEXT_176 STROBE_TEXT_168 ",%84,%85,%86,%87"
#define STROBE_TEXT_184 STROBE_TEXT_176 ",%88,%89,%90,%91"
#define STROBE_TEXT_192 STROBE_TEXT_184 ",%92,%93,%94,%95"
#define STROBE_TEXT_200 STROBE_TEXT_192 ",%96,%97,%98,%99"
#define STROBE_TEXT_208 STROBE_TEXT_200 ",%100,%101,%102,%103"
#define STROBE_TEXT_216 STROBE_TEXT_208 ",%104,%105,%106,%107"
#define STROBE_TEXT_224 STROBE_TEXT_216 ",%108,%109,%110,%111"
#define STROBE_TEXT_232 STROBE_TEXT_224 ",%112,%113,%114,%115"
#define STROBE_TEXT_240 STROBE_TEXT_232 ",%116,%117,%118,%119"
#define STROBE_TEXT_248 STROBE_TEXT_240 ",%120,%121,%122,%123"
#define STROBE_TEXT_256 STROBE_TEXT_248 ",%124,%125,%126,%127"

#define STROBE_SUM(i) "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
#define STROBE_SUMS_8 STROBE_SUM(0)
#define STROBE_SUMS_16 STROBE_SUMS_8, STROBE_SUM(1)
#define STROBE_SUMS_24 STROBE_SUMS_16, STROBE_SUM(2)
#define STROBE_SUMS_32 STROBE_SUMS_24, STROBE_SUM(3)
#define STROBE_SUMS_40 STROBE_SUMS_32, STROBE_SUM(4)
#define STROBE_SUMS_48 STROBE_SUMS_40, STROBE_SUM(5)
#define STROBE_SUMS_56 STROBE_SUMS_48, STROBE_SUM(6)
#define STROBE_SUMS_64 STROBE_SUMS_56, STROBE_SUM(7)
#define STROBE_SUMS_72 STROBE_SUMS_64, STROBE_SUM(8)
#define STROBE_SUMS_80 STROBE_SUMS_72, STROBE_SUM(9)
#define STROBE_SUMS_88 STROBE_SUMS_80, STROBE_SUM(10)
#define STROBE_SUMS_96 STROBE_SUMS_88, STROBE_SUM(11)
#define STROBE_SUMS_104 STROBE_SUMS_96, STROBE_SUM(12)
#define STROBE_SUMS_112 STROBE_SUMS_104, STROBE_SUM(13)
#define STROBE_SUMS_120 STROBE_SUMS_112, STROBE_SUM(14)
#define STROBE_SUMS_128 STROBE_SUMS_120, STROBE_SUM(15)
#define STROBE_SUMS_136 STROBE_SUMS_128, STROBE_SUM(16)
#define STROBE_SUMS_144 STROBE_SUMS_136, STROBE_SUM(17)
#define STROBE_SUMS_152 STROBE_SUMS_144, STROBE_SUM(18)
#define STROBE_SUMS_160 STROBE_SUMS_152, STROBE_SUM(19)
#define STROBE_SUMS_168 STROBE_SUMS_160, STROBE_SUM(20)
#define STROBE_SUMS_176 STROBE_SUMS_168, STROBE_SUM(21)
#define STROBE_SUMS_184 STROBE_SUMS_176, STROBE_SUM(22)
#define STROBE_SUMS_192 STROBE_SUMS_184, STROBE_SUM(23)
#define STROBE_SUMS_200 STROBE_SUMS_192, STROBE_SUM(24)
#define STROBE_SUMS_208 STROBE_SUMS_200, STROBE_SUM(25)
#define STROBE_SUMS_216 STROBE_SUMS_208, STROBE_SUM(26)
#define STROBE_SUMS_224 STROBE_SUMS_216, STROBE_SUM(27)
#define STROBE_SUMS_232 STROBE_SUMS_224, STROBE_SUM(28)
#define STROBE_SUMS_240 STROBE_SUMS_232, STROBE_SUM(29)
#define STROBE_SUMS_248 STROBE_SUMS_240, STROBE_SUM(30)
#define STROBE_SUMS_256 STROBE_SUMS_248, STROBE_SUM(31)

// `types` are those of the operands; `left` and what follows are operands by their numbers.
#define STROBE_WGMMA_TEXT(columns, types, left, right, add, orders)                         \
  "{ .reg .pred p; setp.ne.b32 p, %" #add ", 0; wgmma.mma_async.sync.aligned.m64n" #columns \
  "k16.f32." types " {" STROBE_TEXT_##columns "}, " left ", %" #right ", p, 1, 1, " orders "; }"

// The numbers are those that follow the sums'.
#define STROBE_WGMMA(columns, a, b, c, d, e, f, g)                                                 \
  template <HalfType type, RightOrder order>                                                       \
  STROBE_DEVICE void wgmma(float(&sums)[columns / 8][4], unsigned long long left,                  \
                           unsigned long long right, bool add) {                                   \
    if constexpr (type == HalfType::bf16) {                                                        \
      asm volatile(STROBE_WGMMA_TEXT(columns, "bf16.bf16", "%" #a, b, c, "0, %" #d)                \
                   : STROBE_SUMS_##columns                                                         \
                   : "l"(left), "l"(right), "r"(add ? 1 : 0), "n"(static_cast<int>(order)));       \
    } else {                                                                                       \
      asm volatile(STROBE_WGMMA_TEXT(columns, "f16.f16", "%" #a, b, c, "0, %" #d)                  \
                   : STROBE_SUMS_##columns                                                         \
                   : "l"(left), "l"(right), "r"(add ? 1 : 0), "n"(static_cast<int>(order)));       \
    }                                                                                              \
  }                                                                                                \
  template <HalfType type, RightOrder order>                                                       \
  STROBE_DEVICE void wgmma(float(&sums)[columns / 8][4], const Word(&left)[4],                     \
                           unsigned long long right, bool add) {                                   \
    if constexpr (type == HalfType::bf16) {                                                        \
      asm volatile(STROBE_WGMMA_TEXT(columns, "bf16.bf16", "{%" #a ",%" #b ",%" #c ",%" #d "}", e, \
                                     f, "%" #g)                                                    \
                   : STROBE_SUMS_##columns                                                         \
                   : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right),           \
                     "r"(add ? 1 : 0), "n"(static_cast<int>(order)));                              \
    } else {                                                                                       \
      asm volatile(                                                                                \
          STROBE_WGMMA_TEXT(columns, "f16.f16", "{%" #a ",%" #b ",%" #c ",%" #d "}", e, f, "%" #g) \
          : STROBE_SUMS_##columns                                                                  \
          : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(add ? 1 : 0),  \
            "n"(static_cast<int>(order)));                                                         \
    }                                                                                              \
  }

STROBE_WGMMA(8, 4, 5, 6, 7, 8, 9, 10)
STROBE_WGMMA(16, 8, 9, 10, 11, 12, 13, 14)
STROBE_WGMMA(24, 12, 13, 14, 15, 16, 17, 18)
STROBE_WGMMA(32, 16, 17, 18, 19, 20, 21, 22)
STROBE_WGMMA(40, 20, 21, 22, 23, 24, 25, 26)
STROBE_WGMMA(48, 24, 25, 26, 27, 28, 29, 30)
STROBE_WGMMA(56, 28, 29, 30, 31, 32, 33, 34)
STROBE_WGMMA(64, 32, 33, 34, 35, 36, 37, 38)
STROBE_WGMMA(72, 36, 37, 38, 39, 40, 41, 42)
STROBE_WGMMA(80, 40, 41, 42, 43, 44, 45, 46)
STROBE_WGMMA(88, 44, 45, 46, 47, 48, 49, 50)
STROBE_WGMMA(96, 48, 49, 50, 51, 52, 53, 54)
STROBE_WGMMA(104, 52, 53, 54, 55, 56, 57, 58)
STROBE_WGMMA(112, 56, 57, 58, 59, 60, 61, 62)
STROBE_WGMMA(120, 60, 61, 62, 63, 64, 65, 66)
STROBE_WGMMA(128, 64, 65, 66, 67, 68, 69, 70)
STROBE_WGMMA(136, 68, 69, 70, 71, 72, 73, 74)
STROBE_WGMMA(144, 72, 73, 74, 75, 76, 77, 78)
STROBE_WGMMA(152, 76, 77, 78, 79, 80, 81, 82)
STROBE_WGMMA(160, 80, 81, 82, 83, 84, 85, 86)
STROBE_WGMMA(168, 84, 85, 86, 87, 88, 89, 90)
STROBE_WGMMA(176, 88, 89, 90, 91, 92, 93, 94)
STROBE_WGMMA(184, 92, 93, 94, 95, 96, 97, 98)
STROBE_WGMMA(192, 96, 97, 98, 99, 100, 101, 102)
STROBE_WGMMA(200, 100, 101, 102, 103, 104, 105, 106)
STROBE_WGMMA(208, 104, 105, 106, 107, 108, 109, 110)
STROBE_WGMMA(216, 108, 109, 110, 111, 112, 113, 114)
STROBE_WGMMA(224, 112, 113, 114, 115, 116, 117, 118)
STROBE_WGMMA(232, 116, 117, 118, 119, 120, 121, 122)
STROBE_WGMMA(240, 120, 121, 122, 123, 124, 125, 126)
STROBE_WGMMA(248, 124, 125, 126, 127, 128, 129, 130)
STROBE_WGMMA(256, 128, 129, 130, 131, 132, 133, 134)

#undef STROBE_WGMMA
#undef STROBE_WGMMA_TEXT
#undef STROBE_SUM

}  // namespace strobe::cuda::ptx
