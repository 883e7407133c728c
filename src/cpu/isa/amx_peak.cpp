// One instruction multiplies 16×32 by 32×16 bf16 into 16×16 fp32.
#define STROBE_ISA amx_peak
#include "cpu/engine/amx_registers.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

struct Multiply {
  static constexpr int kDepth = 32;
  static void step() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
};

}  // namespace

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  return tile_multiply_loop<Multiply>(iterations);
}

}  // namespace strobe::cpu::STROBE_ISA
