#include "cuda/jit/loaded_kernel.h"

#include <stdexcept>

#include "core/text.h"
#include "cuda/driver/graph.h"
#include "cuda/jit/build.h"
#include "cuda/jit/nvrtc.h"
#include "cuda/jit/shared_work.h"
#include "strobe/trace.h"

namespace strobe::cuda::jit {
namespace {

/// A driver does not load what the compiler of a later CUDA made, and is not clear about it.
std::unique_ptr<const driver::Module> load_module(const driver::Device& device,
                                                  const std::string& cubin) {
  try {
    return std::make_unique<const driver::Module>(device, cubin);
  } catch (const driver::CudaError& error) {
    if (std::stoi(nvrtc().version()) <= driver::found().version / 1000) throw;
    throw Error(concat(error.what(), "; the kernel comes from NVRTC ", nvrtc().version(),
                       ", which is later than the CUDA ", driver::found().version / 1000,
                       " of the driver: update the driver, or name an older library with "
                       "STROBE_NVRTC"));
  }
}

}  // namespace

LoadedKernel::LoadedKernel(const driver::Device& device, const KernelDescription& kernel) {
  Span span("cuda", "load kernel");
  if (span) span.tell("kernel", kernel.name);
  const Built built = build(kernel, Architecture::of(device));
  resources_ = built.binary.resources;
  const driver::OutsideOfCapture scope(device);  // a call may be the first with such operands
  module_ = load_module(device, built.binary.cubin);
  for (const std::string& name : kernel.entries) {
    driver::Function function = module_->function(name);
    if (kernel.dynamic_shared_bytes > 0) function.allow_dynamic_shared(kernel.dynamic_shared_bytes);
    entries_.push_back({name, function});
  }
}

driver::Function LoadedKernel::function(std::string_view entry) const {
  for (const Entry& known : entries_) {
    if (known.name == entry) return known.function;
  }
  throw std::logic_error(concat("the kernel has no entry '", entry, "'"));
}

namespace {

using Pointer = std::shared_ptr<const LoadedKernel>;

SharedWork<Pointer>& loaded() {
  // Never destroyed: at the end of a process the driver may be gone before its modules are.
  static auto& all = *new SharedWork<Pointer>(SharedWork<Pointer>::Results::kept);
  return all;
}

/// The sources are the library's own, so the description and the device say it all.
std::string name_of(const driver::Device& device, const KernelDescription& kernel) {
  return concat(device.index(), " ", kernel.name, " ", kernel.source, " ",
                joined(kernel.entries, " "), "\n", config_header(kernel));
}

}  // namespace

Pointer load(const driver::Device& device, const KernelDescription& kernel) {
  return loaded().get(name_of(device, kernel),
                      [&] { return std::make_shared<const LoadedKernel>(device, kernel); });
}

}  // namespace strobe::cuda::jit
