#pragma once

#include <string>

#include "core/recorder.h"
#include "core/text.h"
#include "strobe/accelerator.h"
#include "strobe/cuda.h"
#include "strobe/machine.h"
#include "strobe/registry.h"

// Between libstrobe, which loads libstrobe_cuda, and that. Objects of both sides' classes pass
// through, so both must come from the same build.
namespace strobe::cuda {

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual void register_implementations(Registry& registry) const = 0;

  /// Where its spans are to go. Before anything else.
  virtual void record_to(Recorder& recorder) const = 0;

  /// Fills in everything but `backend`.
  virtual void describe(CudaStatus& status) const = 0;
  virtual CudaOpponents opponents() const = 0;
  virtual LoadedLibrary profiler() const = 0;

  virtual const Accelerator& accelerator(int index) const = 0;
  virtual std::vector<std::string> warnings() const = 0;
  virtual std::vector<KernelConfiguration> configurations(std::string_view architecture) const = 0;
  virtual CompiledKernel compile(const KernelConfiguration& configuration) const = 0;
  virtual std::vector<std::string> variants(std::string_view architecture, const Problem& problem,
                                            const PlanOptions& options) const = 0;
  virtual CompiledKernel compile_variant(std::string_view architecture, const Problem& problem,
                                         const PlanOptions& options) const = 0;
  virtual std::string variants_folder() const = 0;
  virtual std::vector<KeptVariant> kept_variants() const = 0;
  virtual std::int64_t clear_variants() const = 0;
  virtual std::string cache_folder() const = 0;
  virtual std::vector<CachedKernel> cached() const = 0;
  virtual std::int64_t clear_cache() const = 0;
};

/// The version, and the sizes of what passes through: tells other builds apart well enough.
inline std::string interface_text() {
  return concat(version(), " ", sizeof(Problem), " ", sizeof(Tensors), " ", sizeof(Plan), " ",
                sizeof(PlanOptions), " ", sizeof(Registry), " ", sizeof(CudaStatus), " ",
                sizeof(CompiledKernel), " ", sizeof(CachedKernel), " ", sizeof(KeptVariant), " ",
                sizeof(DeviceState), " ", sizeof(DeviceSettings), " ", sizeof(MultiplyRate), " ",
                sizeof(SquareProduct), " ", sizeof(RecordedSpan), " ", sizeof(DeviceActivity), " ",
                sizeof(DeviceCounts));
}

/// The only symbol of libstrobe_cuda: its backend, or null if `interface` is not its own.
inline constexpr const char* kEntryPoint = "strobe_cuda_backend";
using EntryPoint = const Backend*(const char* interface);

}  // namespace strobe::cuda
