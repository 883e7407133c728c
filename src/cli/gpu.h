#pragma once

#include <cstdio>
#include <nlohmann/json_fwd.hpp>

#include "strobe/cuda.h"

// What `strobe info` says of GPUs and of the libraries that they need.
namespace strobe::cli {

void show_gpus(std::FILE* out, const CudaStatus& status);

nlohmann::json cuda_record(const CudaStatus& status);

}  // namespace strobe::cli
