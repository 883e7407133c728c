#pragma once
// The tile registers of AMX: 0 to 3 hold two by two tiles of the result, 4 and 5 the left operand,
// 6 and 7 the right one.

#include "cpu/engine/amx_registers.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

struct AmxUnit {
  using Setup = TileRegisters;

  template <int rows, int columns>
  STROBE_INLINE void begin(bool add, const float* c, std::int64_t stride) {
    const std::int64_t bytes = stride * 4;
    if (add) {
      _tile_loadd(0, c, bytes);
      if constexpr (columns == 2) _tile_loadd(1, c + 16, bytes);
      if constexpr (rows == 2) _tile_loadd(2, c + 16 * stride, bytes);
      if constexpr (rows == 2 && columns == 2) _tile_loadd(3, c + 16 * stride + 16, bytes);
    } else {
      _tile_zero(0);
      if constexpr (columns == 2) _tile_zero(1);
      if constexpr (rows == 2) _tile_zero(2);
      if constexpr (rows == 2 && columns == 2) _tile_zero(3);
    }
  }

  template <int rows>
  STROBE_INLINE void load_left(const std::uint16_t* tile, std::int64_t next) {
    _tile_loadd(4, tile, 64);
    if constexpr (rows == 2) _tile_loadd(5, tile + next, 64);
  }
  template <int columns>
  STROBE_INLINE void load_right(const std::uint16_t* tile, std::int64_t next) {
    _tile_loadd(6, tile, 64);
    if constexpr (columns == 2) _tile_loadd(7, tile + next, 64);
  }

  template <int rows, int columns>
  STROBE_INLINE void multiply() {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (columns == 2) _tile_dpbf16ps(1, 4, 7);
    if constexpr (rows == 2) _tile_dpbf16ps(2, 5, 6);
    if constexpr (rows == 2 && columns == 2) _tile_dpbf16ps(3, 5, 7);
  }

  template <int rows, int columns>
  STROBE_INLINE void end(float* c, std::int64_t stride) {
    const std::int64_t bytes = stride * 4;
    _tile_stored(0, c, bytes);
    if constexpr (columns == 2) _tile_stored(1, c + 16, bytes);
    if constexpr (rows == 2) _tile_stored(2, c + 16 * stride, bytes);
    if constexpr (rows == 2 && columns == 2) _tile_stored(3, c + 16 * stride + 16, bytes);
  }
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
