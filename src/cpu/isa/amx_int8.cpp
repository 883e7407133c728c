// One instruction multiplies 16×64 by 64×16 int8 into 16×16 int32.
#define STROBE_ISA amx_int8
#include "cpu/engine/amx_registers.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

struct Multiply {
  static constexpr int kDepth = 64;
  static void step() {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
};

}  // namespace

double multiply_add_loop(std::int64_t iterations);
double multiply_add_loop(std::int64_t iterations) {
  return tile_multiply_loop<Multiply>(iterations);
}

}  // namespace strobe::cpu::STROBE_ISA
