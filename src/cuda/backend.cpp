#include "cuda/backend.h"

#include <algorithm>

#include "cuda/accelerator.h"
#include "cuda/baselines/cudnn/library.h"
#include "cuda/baselines/standard/cublas.h"
#include "cuda/cupti/library.h"
#include "cuda/driver/device.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/nvml.h"
#include "cuda/jit/build.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/jit/tuning_store.h"
#include "cuda/kernels/catalogue.h"
#include "cuda/kernels/flash/flash.h"
#include "cuda/warnings.h"
#include "strobe/error.h"

namespace strobe::cuda {
namespace {

LoadedLibrary describe_driver() {
  const driver::Found& found = driver::found();
  return {.path = found.path,
          .version = found.version == 0
                         ? ""
                         : concat(found.version / 1000, ".", found.version % 1000 / 10),
          .missing = found.missing};
}

LoadedLibrary describe_nvrtc() {
  const jit::FoundNvrtc& found = jit::found_nvrtc();
  if (!found.nvrtc) return {.missing = found.missing};
  return {.path = found.nvrtc->path(), .version = found.nvrtc->version()};
}

LoadedLibrary describe_nvml() {
  const driver::Nvml nvml = driver::load_nvml();
  return {.path = nvml.path, .version = nvml.driver_version, .missing = nvml.missing};
}

LoadedLibrary describe_cublas() {
  const cublas::Found& found = cublas::found();
  if (!found.library) return {.missing = found.missing};
  return {.path = found.library->path(), .version = found.library->version()};
}

LoadedLibrary describe_cudnn() {
  const cudnn::Found& found = cudnn::found();
  if (!found.library) return {.missing = found.missing};
  return {.path = found.library->path(), .version = found.library->version_text()};
}

LoadedLibrary describe_cupti() {
  try {
    const cupti::Library& library = cupti::library();
    return {.path = library.object().path(), .version = library.version()};
  } catch (const cupti::Refused& refusal) {
    return {.missing = refusal.what()};
  }
}

CudaDevice describe_device(const driver::Device& device) {
  CudaDevice here{
      .index = device.index(),
      .name = device.name(),
      .compute_capability = concat(device.capability_major(), ".", device.capability_minor()),
      .multiprocessors = device.multiprocessors(),
      .memory_bytes = device.memory_bytes(),
      .l2_bytes = device.l2_bytes(),
      .shared_bytes_per_block = device.shared_bytes_per_block()};
  try {
    here.architecture = jit::Architecture::of(device).text();
  } catch (const Unsupported&) {  // older than any kernel: shown without
  }
  return here;
}

/// The first of what keeps GPUs from being used.
std::string why_unavailable(const CudaStatus& status) {
  if (!status.driver.missing.empty()) return status.driver.missing;
  const auto usable = [](const CudaDevice& device) { return !device.architecture.empty(); };
  if (std::none_of(status.devices.begin(), status.devices.end(), usable)) {
    return "no GPU here has compute capability 8.0 (A100, RTX 30) or later, which the kernels "
           "want";
  }
  return status.nvrtc.missing;
}

/// What all entries need: the most of each.
CompiledKernel summary(const jit::KernelDescription& kernel, const jit::Built& built) {
  CompiledKernel compiled{.threads = kernel.threads,
                          .planned_registers = kernel.max_registers,
                          .shared_bytes = kernel.dynamic_shared_bytes,
                          .from_cache = built.from_cache,
                          .seconds = built.seconds};
  int static_shared = 0;
  for (const jit::Resources& r : built.binary.resources) {
    compiled.registers = std::max(compiled.registers, r.registers);
    compiled.spill_bytes = std::max(compiled.spill_bytes, r.spill_store_bytes + r.spill_load_bytes);
    compiled.stack_bytes = std::max(compiled.stack_bytes, r.stack_bytes);
    static_shared = std::max(static_shared, r.shared_bytes);
  }
  compiled.shared_bytes += static_shared;
  return compiled;
}

/// Of an H200, where there is no GPU to ask.
constexpr int kMultiprocessors = 132;

class CudaBackend final : public Backend {
 public:
  void register_implementations(Registry& registry) const override { register_kernels(registry); }

  void record_to(Recorder& recorder) const override { use_recorder(recorder); }

  void describe(CudaStatus& status) const override {
    status.driver = describe_driver();
    status.nvrtc = describe_nvrtc();
    status.nvml = describe_nvml();
    if (status.driver.missing.empty()) {
      for (int index = 0; index < driver::Device::count(); ++index) {
        status.devices.push_back(describe_device(driver::Device::at(index)));
      }
    }
    status.unavailable = why_unavailable(status);
  }

  CudaOpponents opponents() const override {
    return {.cublas = describe_cublas(), .cudnn = describe_cudnn()};
  }

  LoadedLibrary profiler() const override { return describe_cupti(); }

  const Accelerator& accelerator(int index) const override { return accelerator_at(index); }

  std::vector<std::string> warnings() const override { return cuda::warnings(); }

  std::vector<KernelConfiguration> configurations(std::string_view architecture) const override {
    const auto parsed = jit::Architecture::parse(architecture);
    std::vector<KernelConfiguration> all;
    for (const jit::KernelDescription& kernel : kernel_configurations(parsed)) {
      all.push_back({kernel.name, jit::configuration_text(kernel), parsed.text()});
    }
    return all;
  }

  CompiledKernel compile(const KernelConfiguration& wanted) const override {
    const auto architecture = jit::Architecture::parse(wanted.architecture);
    for (const jit::KernelDescription& kernel : kernel_configurations(architecture)) {
      if (kernel.name == wanted.kernel && jit::configuration_text(kernel) == wanted.configuration) {
        return summary(kernel, jit::build(kernel, architecture));
      }
    }
    throw InvalidArgument("kernel", concat("'", wanted.kernel, "' has no configuration '",
                                           wanted.configuration, "'"));
  }

  std::vector<std::string> variants(std::string_view architecture, const Problem& problem,
                                    const PlanOptions& options) const override {
    return flash::variants(problem, options, jit::Architecture::parse(architecture),
                           kMultiprocessors);
  }

  CompiledKernel compile_variant(std::string_view architecture, const Problem& problem,
                                 const PlanOptions& options) const override {
    const auto parsed = jit::Architecture::parse(architecture);
    const jit::KernelDescription kernel =
        flash::describe_variant(problem, options, parsed, kMultiprocessors);
    return summary(kernel, jit::build(kernel, parsed));
  }

  std::string variants_folder() const override { return jit::user_tuning().folder(); }

  std::vector<KeptVariant> kept_variants() const override {
    std::vector<KeptVariant> all;
    for (const jit::TuningStore::Entry& entry : jit::user_tuning().entries()) {
      const jit::TuningKey& key = entry.key;
      all.push_back({.gpu = key.gpu,
                     .architecture = key.architecture,
                     .compiler = key.compiler,
                     .kernel = key.kernel,
                     .options = key.options,
                     .problem = key.problem,
                     .tuned = entry.tuned,
                     .path = entry.path,
                     .bytes = entry.bytes,
                     .age_seconds = entry.age.count()});
    }
    return all;
  }

  std::int64_t clear_variants() const override { return jit::user_tuning().clear(); }

  std::string cache_folder() const override { return jit::user_cache().folder(); }

  std::vector<CachedKernel> cached() const override {
    std::vector<CachedKernel> all;
    for (const jit::DiskCache::Entry& entry : jit::user_cache().entries()) {
      const auto line = [&entry](const char* name) { return jit::key_line(entry.key, name); };
      all.push_back({.kernel = {line("kernel"), line("configuration"), line("architecture")},
                     .compiler = line("compiler"),
                     .path = entry.path,
                     .bytes = entry.bytes,
                     .age_seconds = entry.age.count()});
    }
    return all;
  }

  std::int64_t clear_cache() const override { return jit::user_cache().clear(); }
};

}  // namespace
}  // namespace strobe::cuda

extern "C" STROBE_API const strobe::cuda::Backend* strobe_cuda_backend(const char* interface) {
  static const strobe::cuda::CudaBackend backend;
  return strobe::cuda::interface_text() == interface ? &backend : nullptr;
}
