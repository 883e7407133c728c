#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strobe::cuda::jit {

/// What a compiled entry takes of the machine.
struct Resources {
  std::string entry{};
  int registers = 0;  ///< of a thread
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int stack_bytes = 0;      ///< of local memory, of a thread
  int shared_bytes = 0;     ///< static, of a block
  bool serialized = false;  ///< somewhere in its source each wgmma waits for the one before

  bool operator==(const Resources&) const = default;
};

/// From what the assembler says with --verbose, in the order in which it says it.
std::vector<Resources> parse_assembler_log(std::string_view log);

/// One line for each, which read_resources reads again.
std::string write_resources(const std::vector<Resources>& all);
std::vector<Resources> read_resources(const std::string& text);

}  // namespace strobe::cuda::jit
