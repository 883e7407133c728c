#include "strobe/attention.h"

#include <new>

#include "core/text.h"
#include "strobe/accelerator.h"
#include "strobe/error.h"
#include "strobe/registry.h"

namespace strobe {
namespace {

constexpr std::align_val_t kAlignment{64};

const Implementation& choose(const Problem& problem, const AttentionOptions& options) {
  const Registry& registry = Registry::instance();
  return options.implementation.empty() ? registry.best(problem, options.device)
                                        : registry.find(options.implementation);
}

std::shared_ptr<std::byte> allocate(std::size_t bytes, Device device) {
  if (bytes == 0) return nullptr;
  if (device.kind != Device::Kind::cpu) return accelerator(device).allocate(bytes);
  if (auto* memory = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow)))
    return {memory, [](std::byte* held) { ::operator delete(held, kAlignment); }};
  throw OutOfMemory(concat("no memory for a workspace of ", bytes,
                           " bytes; use a smaller problem or an implementation that needs less"));
}

}  // namespace

Attention::Attention(const Problem& problem, const AttentionOptions& options)
    : implementation_(&choose(problem, options)),
      plan_(implementation_->plan(problem, {.threads = options.threads})),
      workspace_(allocate(plan_.workspace_bytes, {.kind = implementation_->device()})) {}

void Attention::operator()(const Tensors& tensors, Stream stream) {
  implementation_->run(plan_, tensors, workspace_.get(), plan_.workspace_bytes, stream);
}

}  // namespace strobe
