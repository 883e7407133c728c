#include "cuda/kernels/flash/hopper_switch.h"

#include <cstdlib>
#include <string_view>

#include "cuda/driver/tensor_map.h"

namespace strobe::cuda::flash {

bool hopper_is_on() {
  const char* const value = std::getenv("STROBE_HOPPER");
  const bool wanted = value == nullptr || std::string_view(value) != "0";
  return wanted && driver::can_encode_tensor_maps();
}

}  // namespace strobe::cuda::flash
