// Compiled for AVX-512, so it keeps what it instantiates to itself, as the files of src/cpu/isa do.
#include "cpu/tile_packs.h"

// The vector type comes first: what follows is written in terms of it.
#define STROBE_ISA tile_packs
#include "cpu/simd/avx512.h"

#include "cpu/engine/tile_engine.h"

namespace strobe::cpu::tile_packs {
namespace {

/// Nothing is multiplied.
struct NoUnit {
  struct Setup {};
};

template <int terms>
Finite pack_terms(const void* row) {
  using Engine = TileEngine<NoUnit, terms>;
  constexpr std::int64_t kRows = kTileDepth;
  constexpr std::int64_t kColumns = kTileDepth;
  constexpr DType kDType = dtype_of_terms(terms);
  alignas(64) char target[4 * terms * kTileSize * sizeof(std::uint16_t)];
  const auto same = [row](std::int64_t) { return row; };
  return {.key_rows = Engine::pack_key_rows(same, kDType, kRows, kRows, kColumns, target),
          .query_panel = Engine::pack_query_panel(same, kDType, kRows, kColumns, target),
          .key_columns = Engine::pack_key_columns(same, kDType, kRows, kRows, kColumns, target),
          .query_rows = Engine::pack_query_rows(same, kDType, kRows, 1, kColumns, target)};
}

}  // namespace

Finite pack_all(DType dtype, const void* row) {
  if (dtype == DType::bf16) return pack_terms<1>(row);
  if (dtype == DType::fp16) return pack_terms<2>(row);
  return pack_terms<3>(row);
}

}  // namespace strobe::cpu::tile_packs
