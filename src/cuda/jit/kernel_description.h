#pragma once

#include <string>
#include <variant>
#include <vector>

namespace strobe::cuda::jit {

/// A type of the device code that a constant stands for.
struct TypeName {
  std::string name{};    ///< "device::bf16"
  std::string header{};  ///< what defines it: "device/types.cuh"; "" for the language's own types

  bool operator==(const TypeName&) const = default;
};

/// A value of one of its enumerations.
struct Enumerator {
  std::string type{};    ///< "strobe::cuda::Arithmetic"
  std::string name{};    ///< "bf16"
  std::string header{};  ///< as above

  bool operator==(const Enumerator&) const = default;
};

/// One choice of a kernel's configuration, under the name that its source knows it by.
struct Constant {
  std::string name{};  ///< "kBlockQueries", "Element"
  std::variant<int, bool, TypeName, Enumerator> value{};
};

using Constants = std::vector<Constant>;

/// A kernel in one configuration: all that decides what it is compiled to, but for the architecture
/// and the compiler.
struct KernelDescription {
  std::string name{};                  ///< "pad_rows"
  std::string source{};                ///< "kernels/pad_rows/pad_rows.cu", from src/cuda
  std::vector<std::string> entries{};  ///< its `extern "C" __global__` functions
  Constants constants{};
  int threads = 0;               ///< of a block; kThreads in the source
  int dynamic_shared_bytes = 0;  ///< of a launch; kDynamicSharedBytes in the source
  int max_registers = 255;       ///< planned for a thread; the tests fail on more
};

/// The header config.cuh that the source includes: namespace config with a constant for each
/// choice, and kThreads and kDynamicSharedBytes.
std::string config_header(const KernelDescription& kernel);

/// The choices on one line, of switches those that are on: "kDim 128, kCausal, kThreads 256".
std::string configuration_text(const KernelDescription& kernel);

}  // namespace strobe::cuda::jit
