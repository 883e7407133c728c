#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/export.h"
#include "strobe/implementation.h"

// GPUs and their kernels. The CUDA backend is a library of its own, libstrobe_cuda, which is loaded
// when it is first needed; without it, or without a driver or a GPU, everything else works.
namespace strobe {

/// A library that is loaded at run time: where it was found, or a sentence that says why it cannot
/// be used and what to do.
struct LoadedLibrary {
  std::string path{};
  std::string version{};
  std::string missing{};
};

struct CudaDevice {
  int index = 0;
  std::string name{};
  std::string compute_capability{};  ///< "9.0"
  std::string architecture{};        ///< kernels are compiled for: "sm_90a"; "" if it is too old
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t shared_bytes_per_block = 0;
};

/// What there is to compute with on GPUs.
struct CudaStatus {
  LoadedLibrary backend{};  ///< libstrobe_cuda
  LoadedLibrary driver{};   ///< libcuda; its version is that of CUDA, "13.0"
  LoadedLibrary nvrtc{};    ///< compiles kernels
  LoadedLibrary nvml{};     ///< knows clocks and power; its version is the driver's, "580.65.06"
  std::vector<CudaDevice> devices{};
  std::string unavailable{};  ///< the first sentence that says why no GPU is used; "" if one is
};

/// Loads the libraries and starts the driver, so it may take a while. Never throws for what is
/// missing.
STROBE_API CudaStatus cuda_status();

/// The libraries of the implementations that are there to compare with.
struct CudaOpponents {
  LoadedLibrary cublas{};  ///< of cuda:standard
  LoadedLibrary cudnn{};   ///< of cuda:cudnn
};

/// Loads them, which nothing else needs and takes long. Never throws for what is missing.
STROBE_API CudaOpponents cuda_opponents();

/// CUPTI, which tells profiles and traces what a GPU did. Loads it, which nobody needs who only
/// computes. Never throws for what is missing.
STROBE_API LoadedLibrary cuda_profiler();

/// What does not work as well as it could, a sentence each, such as a cache that cannot be written.
/// Loads nothing.
STROBE_API std::vector<std::string> cuda_warnings();

/// A GPU kernel with the choices that it is compiled with.
struct KernelConfiguration {
  std::string kernel{};
  std::string configuration{};
  std::string architecture{};  ///< "sm_90a"
};

/// Those that are worth compiling before they are needed. Throws InvalidArgument for what is not an
/// architecture, and Unsupported if there is no backend.
STROBE_API std::vector<KernelConfiguration> kernel_configurations(std::string_view architecture);

/// What came out of the compiler; of a kernel with several entries, the most of each.
struct CompiledKernel {
  int threads = 0;            ///< of a block
  int registers = 0;          ///< of a thread
  int planned_registers = 0;  ///< at most
  int spill_bytes = 0;        ///< stored and loaded
  int stack_bytes = 0;        ///< of local memory, of a thread
  int shared_bytes = 0;       ///< of a block, static and dynamic
  bool from_cache = false;
  double seconds = 0;  ///< to compile it, or to find it in the cache
};

/// Compiles one of them, if it is not in the cache, and keeps it there; needs no GPU. Throws
/// Unsupported if there is no compiler, and Error with the compiler's log.
STROBE_API CompiledKernel compile_kernel(const KernelConfiguration& configuration);

/// A compiled kernel on disk.
struct CachedKernel {
  KernelConfiguration kernel{};
  std::string compiler{};  ///< "NVRTC 13.0"
  std::string path{};
  std::int64_t bytes = 0;
  std::int64_t age_seconds = 0;
};

/// What Implementation::variants of cuda:flash would answer on a GPU of that architecture, with as
/// many multiprocessors as an H200 has; needs no GPU. Throws as kernel_configurations does.
STROBE_API std::vector<std::string> kernel_variants(std::string_view architecture,
                                                    const Problem& problem,
                                                    const PlanOptions& options = {});

/// Compiles the kernel of the variant that the options name, or of the usual one, and keeps it as
/// compile_kernel does; of a backward pass the main one. Throws Unsupported if that GPU has no
/// variants of the problem, InvalidArgument for another name.
STROBE_API CompiledKernel compile_variant(std::string_view architecture, const Problem& problem,
                                          const PlanOptions& options = {});

/// A tuned variant on disk.
struct KeptVariant {
  std::string gpu{};
  std::string architecture{};
  std::string compiler{};
  std::string kernel{};
  std::string options{};  ///< "reference fixed", "deterministic"
  std::string problem{};  ///< its text form
  TunedVariant tuned{};
  std::string path{};
  std::int64_t bytes = 0;
  std::int64_t age_seconds = 0;
};

/// Throw Unsupported if there is no backend. Of tuned variants, those of other GPUs, and of kernels
/// that have changed since, are among them.
STROBE_API std::vector<KeptVariant> kept_variants();
STROBE_API std::string kept_variants_folder();

/// Removes all of them and returns how many bytes that were. Processes that have read them go on
/// with them.
STROBE_API std::int64_t clear_kept_variants();

/// Throw Unsupported if there is no backend.
STROBE_API std::string kernel_cache_folder();
STROBE_API std::vector<CachedKernel> cached_kernels();

/// Removes all of them and returns how many bytes that were.
STROBE_API std::int64_t clear_kernel_cache();

}  // namespace strobe
