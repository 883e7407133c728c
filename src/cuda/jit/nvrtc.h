#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/driver/checked.h"
#include "cuda/jit/sources.h"
#include "strobe/error.h"

// NVIDIA's run-time compiler, found at run time. Needs no GPU.
namespace strobe::cuda::jit {

/// The compiler did not accept a program.
class CompileError : public Error {
 public:
  using Error::Error;
};

class Nvrtc {
 public:
  explicit Nvrtc(SharedObject object);
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  const std::string& path() const;

  /// "13.0"
  const std::string& version() const { return version_; }

  /// What keeps it from serving; "" if nothing does.
  const std::string& trouble() const { return trouble_; }

  /// Whether it compiles for sm_90, say, given as 90.
  bool knows(int architecture) const;

  struct Program {
    std::string_view text;  ///< ends with a zero
    std::string name;       ///< as messages call it
    const Headers& headers;
    std::vector<std::string> options;
  };

  struct Output {
    std::string cubin{};
    std::string log{};
  };

  /// From any number of threads at once. Throws CompileError with the compiler's log.
  Output compile(const Program& program) const;

 private:
  struct Functions;
  std::unique_ptr<const Functions> functions_;
  std::string version_{};
  std::string trouble_{};
  std::vector<int> architectures_{};
};

/// The compiler, or a sentence that says why there is none.
struct FoundNvrtc {
  std::unique_ptr<const Nvrtc> nvrtc{};
  std::string missing{};
};

/// The first of these libraries that can be used, and whose kernels a driver of this version, 12040
/// for CUDA 12.4, would load; 0 is no driver, for which any will do.
FoundNvrtc first_that_serves(const std::vector<std::string>& files, int driver);

/// What STROBE_NVRTC names, whatever the driver; or the first that serves by its plain name,
/// beneath CUDA_HOME or CUDA_PATH, in /usr/local/cuda, or among the packages of Python or those
/// that the set-up fetched for the tests.
FoundNvrtc load_nvrtc();

/// The same, once for the process.
const FoundNvrtc& found_nvrtc();

/// Whether somebody has asked for it.
bool nvrtc_is_loaded();

/// Throws Unsupported with the sentence if there is none.
const Nvrtc& nvrtc();

}  // namespace strobe::cuda::jit
