#pragma once

#include <string>

namespace strobe::lab {

/// Where a program is found on the PATH; "" if it is not.
std::string find_program(const std::string& name);

}  // namespace strobe::lab
