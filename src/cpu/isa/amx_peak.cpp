// Tiles of 16 rows of 64 bytes: one instruction multiplies 16×32 by 32×16 bf16 into 16×16 fp32.
#include <immintrin.h>

#include <cstdint>

namespace strobe::cpu::amx_peak {
namespace {

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Not a local variable: the intrinsic does not tell the compiler how much of it is read.
constexpr TileConfig kConfig{};

}  // namespace

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  _tile_loadconfig(&kConfig);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t i = 0; i < iterations; ++i) {  // two rows of tiles times two columns
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 4 * 2.0 * 16 * 16 * 32 * static_cast<double>(iterations);
}

}  // namespace strobe::cpu::amx_peak
