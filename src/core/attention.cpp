#include "strobe/attention.h"

#include <new>

#include "core/text.h"
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

std::byte* allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (auto* memory = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow)))
    return memory;
  throw OutOfMemory(concat("no memory for a workspace of ", bytes,
                           " bytes; use a smaller problem or an implementation that needs less"));
}

}  // namespace

void Attention::Free::operator()(std::byte* memory) const {
  ::operator delete(memory, kAlignment);
}

Attention::Attention(const Problem& problem, const AttentionOptions& options)
    : implementation_(&choose(problem, options)),
      plan_(implementation_->plan(problem, {.threads = options.threads})),
      workspace_(allocate(plan_.workspace_bytes)) {}

void Attention::operator()(const Tensors& tensors, Stream stream) {
  implementation_->run(plan_, tensors, workspace_.get(), plan_.workspace_bytes, stream);
}

}  // namespace strobe
