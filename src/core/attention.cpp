#include "strobe/attention.h"

#include <algorithm>
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

PlanOptions plan_options(const AttentionOptions& options) {
  return {.threads = options.threads,
          .device = options.device.index,
          .deterministic = options.deterministic};
}

Problem with_pass(Problem problem, Pass pass) {
  problem.pass = pass;
  return problem;
}

/// Something even for no rows: an LSE without data is one that was not given.
std::size_t lse_bytes(const Problem& problem) {
  const std::int64_t rows = std::max<std::int64_t>(problem.heads * problem.total_q(), 1);
  return static_cast<std::size_t>(rows) * sizeof(float);
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
      plan_(implementation_->plan(problem, plan_options(options))),
      workspace_(allocate(plan_.workspace_bytes, plan_.device)) {}

void Attention::operator()(const Tensors& tensors, Stream stream) {
  implementation_->run(plan_, tensors, workspace_.get(), plan_.workspace_bytes, stream);
}

TrainingAttention::TrainingAttention(const Problem& problem, const AttentionOptions& options)
    : implementation_(&choose(with_pass(problem, Pass::backward), options)),
      forward_(implementation_->plan(with_pass(problem, Pass::forward), plan_options(options))),
      backward_(implementation_->plan(with_pass(problem, Pass::backward), plan_options(options))),
      workspace_(allocate(workspace_bytes(), forward_.device)),
      lse_(allocate(lse_bytes(problem), forward_.device)) {}

std::size_t TrainingAttention::workspace_bytes() const {
  return std::max(forward_.workspace_bytes, backward_.workspace_bytes);
}

TensorView TrainingAttention::kept_lse(const TensorView& q) const {
  const Problem& problem = forward_.problem;
  const Device device = forward_.device;
  if (problem.varlen()) {
    const std::int64_t rows = std::min(q.shape[0], problem.total_q());
    return TensorView::contiguous(lse_.get(), DType::fp32, {problem.heads, rows}, device);
  }
  return TensorView::contiguous(lse_.get(), DType::fp32,
                                {problem.batch, problem.heads, problem.seqlen_q}, device);
}

void TrainingAttention::run(const Plan& plan, Tensors tensors, Stream stream) {
  if (!tensors.lse.given()) tensors.lse = kept_lse(tensors.q);
  implementation_->run(plan, tensors, workspace_.get(), workspace_bytes(), stream);
}

void TrainingAttention::forward(const Tensors& tensors, Stream stream) {
  run(forward_, tensors, stream);
}

void TrainingAttention::backward(const Tensors& tensors, Stream stream) {
  run(backward_, tensors, stream);
}

}  // namespace strobe
