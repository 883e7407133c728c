#pragma once

#include <string>
#include <vector>

namespace strobe::cuda {

/// Where a library of CUDA's may be: its plain names first, for that is what the system, or the
/// program around us, has chosen; then files of these names beneath CUDA_HOME, CUDA_PATH and
/// /usr/local/cuda, among the packages of Python where this library is in one, and among those that
/// the set-up fetched for the tests.
std::vector<std::string> library_files(const std::vector<std::string>& names);

}  // namespace strobe::cuda
