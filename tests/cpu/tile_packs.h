#pragma once

#include <cstdint>

#include "strobe/dtype.h"

namespace strobe::cpu::tile_packs {

/// What the packs of a TileEngine say: whether all that they met was finite.
struct Finite {
  bool key_rows;
  bool query_panel;
  bool key_columns;
  bool query_rows;
};

/// Of operands whose rows are all this one, of 32 elements. For machines with AVX-512.
Finite pack_all(DType dtype, const void* row);

}  // namespace strobe::cpu::tile_packs
