#pragma once

#include <memory>

#include "strobe/implementation.h"

namespace strobe::reference {

std::unique_ptr<Implementation> make_standard();
std::unique_ptr<Implementation> make_oracle();

}  // namespace strobe::reference
