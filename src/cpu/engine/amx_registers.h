#pragma once

#include <immintrin.h>

#include <cstdint>

namespace strobe::cpu::STROBE_ISA {
namespace {

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Not a local variable: the intrinsic does not tell the compiler how much of it is read.
constexpr TileConfig kTileConfig{};

/// Configures the tile registers of this thread for as long as it lives.
class TileRegisters {
 public:
  TileRegisters() { _tile_loadconfig(&kTileConfig); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
  ~TileRegisters() { _tile_release(); }
};

/// Multiplies two rows of tiles by two columns again and again. `Multiply` has `step`, four tile
/// instructions, and `kDepth`, how many numbers a tile has along the sum. Returns the operations
/// done.
template <class Multiply>
inline double tile_multiply_loop(std::int64_t iterations) {
  const TileRegisters registers;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::int64_t i = 0; i < iterations; ++i) Multiply::step();
  return 4 * 2.0 * 16 * 16 * Multiply::kDepth * static_cast<double>(iterations);
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
