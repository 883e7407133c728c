#pragma once

#include <filesystem>
#include <optional>
#include <string>

// The version of the compiler is part of what a kernel is kept under, and to ask for it the
// compiler must be loaded, which takes longer than to load a kernel. So it is remembered which
// library was found, and what it said.
namespace strobe::cuda::jit {

class KnownCompiler {
 public:
  /// In a file of its own in the folder.
  explicit KnownCompiler(const std::filesystem::path& folder) : file_(folder / "compiler") {}

  /// The version of the library that a search like this one's found last time, if the file that it
  /// was is still the same; nothing if it must be looked for.
  std::optional<std::string> version() const;

  /// Remembers what was found for the next process. Where that is not possible, it looks again.
  void remember(const std::string& path, const std::string& version) const;

 private:
  std::filesystem::path file_;
};

/// The version of the compiler that kernels come from, "13.0". Throws Unsupported if there is none.
std::string compiler_version();

/// Why there is none; "" if there is one.
std::string missing_compiler();

}  // namespace strobe::cuda::jit
