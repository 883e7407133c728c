#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

// The results of a sweep for people, drawn from its records in their order.
namespace strobe::lab {

/// A row for every record.
std::string list_table(std::span<const nlohmann::json> records);

/// batch_size, seq_len, nheads, head_size, fwd_only, throughput(iters/s), latency(ms/iter), peak
/// memory(MB/device), speed(TFLOPS): first the forward passes, then (fwd_only False) forward and
/// backward together. A table of its own for whatever else differs, the implementation for one.
std::string throughput_table(std::span<const nlohmann::json> records);

/// A row for every head dimension and length, a column for every pass and implementation, with the
/// speed-up of the last implementation over the first, and the memory.
std::string grid_table(std::span<const nlohmann::json> records);

}  // namespace strobe::lab
