#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cuda/jit/architecture.h"
#include "cuda/jit/disk_cache.h"
#include "cuda/jit/kernel_description.h"
#include "cuda/jit/nvrtc.h"

namespace strobe::cuda::jit {

/// A kernel as it came out of the compiler, now or earlier.
struct Built {
  Binary binary{};
  bool from_cache = false;
  double seconds = 0;  ///< to find or to compile it
};

/// From the user's cache on disk, else by the compiler, and then it is kept; once for all threads
/// that ask for it at a time. Throws CompileError with the configuration and the compiler's log,
/// and Unsupported if there is no compiler, or one that does not know the architecture.
Built build(const KernelDescription& kernel, const Architecture& architecture);

/// The same with the text of the source, and the cache, given.
Built build(const KernelDescription& kernel, std::string_view source,
            const Architecture& architecture, const DiskCache& cache);

/// By this compiler, and nothing is kept. Throws likewise.
Binary compile(const Nvrtc& compiler, const KernelDescription& kernel, std::string_view source,
               const Architecture& architecture);

/// Everything that a build depends on, a line each: what it is kept under. The parts that people
/// want to see can be read back with key_line.
std::string cache_key(const KernelDescription& kernel, std::string_view source,
                      const Architecture& architecture, const std::string& compiler_version);

/// A number that is another if the source, or anything that it includes, is: sixteen digits. The
/// configuration is not part of it.
std::string sources_text(std::string_view source_path);

/// The value of one line of a key: "kernel", "configuration", "architecture", "compiler".
std::string key_line(const std::string& key, std::string_view name);

}  // namespace strobe::cuda::jit
