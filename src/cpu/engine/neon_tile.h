#pragma once
// What the assembly of the NEON tiles shares. Included after a vector type of cpu/simd, in the
// namespace STROBE_ISA names.

#define STROBE_NEON_ZERO4(a, b, c, d) \
  "movi v" #a ".2d, #0\nmovi v" #b ".2d, #0\nmovi v" #c ".2d, #0\nmovi v" #d ".2d, #0\n"
// The 24 accumulators of a tile, v8 to v31.
#define STROBE_NEON_ZERO_TILE       \
  STROBE_NEON_ZERO4(8, 9, 10, 11)   \
  STROBE_NEON_ZERO4(12, 13, 14, 15) \
  STROBE_NEON_ZERO4(16, 17, 18, 19) \
  STROBE_NEON_ZERO4(20, 21, 22, 23) \
  STROBE_NEON_ZERO4(24, 25, 26, 27) \
  STROBE_NEON_ZERO4(28, 29, 30, 31)
#define STROBE_NEON_REGISTERS                                                                    \
  "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
      "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", \
      "v28", "v29", "v30", "v31"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// What a tile does with what is in c: replaces it, or adds a sum that started from zero.
enum class Into { replace, add };

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
