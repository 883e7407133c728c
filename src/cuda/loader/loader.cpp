// The part of the CUDA backend that is in libstrobe: it finds and loads the rest.
#include <atomic>
#include <filesystem>

#include "core/shared_object.h"
#include "core/text.h"
#include "cuda/backend.h"
#include "strobe/error.h"

namespace strobe {
namespace cuda {
namespace {

struct Loaded {
  const Backend* backend = nullptr;
  LoadedLibrary library{};
};

/// Set once the backend is there, for those who must not load it.
std::atomic<const Backend*> backend_in_use = nullptr;

Loaded load() {
  const std::filesystem::path self = file_of_code(reinterpret_cast<const void*>(&load));
  const std::string beside = self.parent_path() / "libstrobe_cuda.so";
  const SharedObject object({beside}, "STROBE_CUDA_LIBRARY");
  if (!object) {
    return {.library = {.missing = concat("the CUDA backend is not there: ", object.error(),
                                          "; install libstrobe_cuda.so beside libstrobe, or name "
                                          "it with STROBE_CUDA_LIBRARY")}};
  }
  Loaded loaded{.library = {.path = object.path(), .version = version()}};
  EntryPoint* entry = nullptr;
  if (object.find(kEntryPoint, entry)) loaded.backend = entry(interface_text().c_str());
  if (loaded.backend == nullptr) {
    loaded.library.missing = concat(object.path(), " was not built together with this libstrobe ",
                                    version(), "; install the two from the same build");
  }
  if (loaded.backend != nullptr) loaded.backend->record_to(recorder());
  backend_in_use = loaded.backend;
  return loaded;
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

const Backend& backend() {
  if (loaded().backend == nullptr) throw Unsupported("libstrobe", {loaded().library.missing});
  return *loaded().backend;
}

}  // namespace

void register_implementations(Registry& registry) {
  if (loaded().backend != nullptr) loaded().backend->register_implementations(registry);
}

}  // namespace cuda

Accelerator::~Accelerator() = default;

const Accelerator& accelerator(Device device) {
  if (device.kind == Device::Kind::cpu)
    throw InvalidArgument("device", "is the CPU, which has no memory of its own");
  return cuda::backend().accelerator(device.index);
}

CudaStatus cuda_status() {
  CudaStatus status{.backend = cuda::loaded().library};
  if (cuda::loaded().backend == nullptr) {
    status.unavailable = status.backend.missing;
  } else {
    cuda::loaded().backend->describe(status);
  }
  return status;
}

CudaOpponents cuda_opponents() {
  if (const cuda::Backend* backend = cuda::loaded().backend) return backend->opponents();
  const LoadedLibrary missing{.missing = cuda::loaded().library.missing};
  return {.cublas = missing, .cudnn = missing};
}

LoadedLibrary cuda_profiler() {
  if (const cuda::Backend* backend = cuda::loaded().backend) return backend->profiler();
  return {.missing = cuda::loaded().library.missing};
}

std::vector<std::string> cuda_warnings() {
  const cuda::Backend* backend = cuda::backend_in_use;
  return backend == nullptr ? std::vector<std::string>{} : backend->warnings();
}

std::vector<KernelConfiguration> kernel_configurations(std::string_view architecture) {
  return cuda::backend().configurations(architecture);
}

CompiledKernel compile_kernel(const KernelConfiguration& configuration) {
  return cuda::backend().compile(configuration);
}

std::vector<std::string> kernel_variants(std::string_view architecture, const Problem& problem,
                                         const PlanOptions& options) {
  return cuda::backend().variants(architecture, problem, options);
}

CompiledKernel compile_variant(std::string_view architecture, const Problem& problem,
                               const PlanOptions& options) {
  return cuda::backend().compile_variant(architecture, problem, options);
}

std::vector<KeptVariant> kept_variants() {
  return cuda::backend().kept_variants();
}

std::string kept_variants_folder() {
  return cuda::backend().variants_folder();
}

std::int64_t clear_kept_variants() {
  return cuda::backend().clear_variants();
}

std::string kernel_cache_folder() {
  return cuda::backend().cache_folder();
}

std::vector<CachedKernel> cached_kernels() {
  return cuda::backend().cached();
}

std::int64_t clear_kernel_cache() {
  return cuda::backend().clear_cache();
}

}  // namespace strobe
