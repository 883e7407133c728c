#pragma once

#include <string>
#include <vector>

namespace strobe::cuda {

/// Something works, but not as well as it could. The library prints nothing, so it is remembered
/// for whoever asks, each sentence once.
void warn(const std::string& sentence);

std::vector<std::string> warnings();

}  // namespace strobe::cuda
