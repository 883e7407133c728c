#include "strobe/implementation.h"

#include "core/pinning.h"
#include "core/text.h"
#include "strobe/error.h"
#include "strobe/trace.h"

namespace strobe {

std::string_view name_of(SoftmaxReference reference) {
  switch (reference) {
    case SoftmaxReference::running:
      return "running";
    case SoftmaxReference::fixed:
      return "fixed";
    case SoftmaxReference::automatic:
      break;
  }
  return "automatic";
}

std::optional<SoftmaxReference> parse_softmax_reference(std::string_view name) {
  for (const auto reference :
       {SoftmaxReference::automatic, SoftmaxReference::running, SoftmaxReference::fixed}) {
    if (name == name_of(reference)) return reference;
  }
  return std::nullopt;
}

namespace {

/// Kernels reckon with every stride, also with those that are never stepped by.
Tensors with_plain_strides(Tensors tensors) {
  for (TensorView* view :
       {&tensors.q, &tensors.k, &tensors.v, &tensors.out, &tensors.lse, &tensors.bias,
        &tensors.sinks, &tensors.alibi_slopes, &tensors.cu_seqlens_q, &tensors.cu_seqlens_k,
        &tensors.dout, &tensors.dq, &tensors.dk, &tensors.dv, &tensors.dbias, &tensors.dsinks}) {
    *view = view->with_plain_strides();
  }
  return tensors;
}

void tell_what(Span& span, const Implementation& implementation, const Problem& problem) {
  span.tell("implementation", full_name(implementation));
  span.tell("problem", problem.text());
}

Device device_of(const Implementation& implementation, const PlanOptions& options) {
  if (implementation.device() == Device::Kind::cpu) return {};
  return {.kind = implementation.device(), .index = options.device};
}

}  // namespace

Implementation::~Implementation() = default;

std::vector<std::string> Implementation::variants(const Problem& /*problem*/,
                                                  const PlanOptions& /*options*/) const {
  return {};
}

void Implementation::keep_variant(const Problem& /*problem*/, const PlanOptions& /*options*/,
                                  const std::optional<TunedVariant>& /*tuned*/) const {
  throw Unsupported(full_name(*this), {"variants to choose from"});
}

void Implementation::deliver(const Plan& /*plan*/, const Tensors& /*tensors*/,
                             Stream /*stream*/) const {}

Habits Implementation::habits() const {
  return {};
}

Plan Implementation::plan(const Problem& problem, const PlanOptions& options) const {
  Span span("library", "plan");
  if (span) tell_what(span, *this, problem);
  problem.validate();
  if (auto support = supports(problem, options); !support) {
    throw Unsupported(full_name(*this), std::move(support.missing));
  }
  if (options.threads < 0) {
    throw InvalidArgument("threads",
                          concat("is ", options.threads, ", allowed is 0 (all) or more"));
  }
  if (!options.variant.empty() && variants(problem, options).empty()) {
    throw InvalidArgument("variant", concat("is '", options.variant, "', but ", full_name(*this),
                                            " has only one way to compute this; leave it out"));
  }
  check_pinning();  // rather now than in the middle of a run
  Plan made = make_plan(problem, options);
  made.device = device_of(*this, options);
  return made;
}

void Implementation::run(const Plan& plan, const Tensors& tensors, void* workspace,
                         std::size_t workspace_bytes, Stream stream) const {
  compute(plan, tensors, workspace, workspace_bytes, stream);
  deliver(plan, tensors, stream);
}

void Implementation::compute(const Plan& plan, const Tensors& tensors, void* workspace,
                             std::size_t workspace_bytes, Stream stream) const {
  Span span("library", "run");
  if (span) tell_what(span, *this, plan.problem);
  validate(plan.problem, tensors, plan.device);
  if (plan.problem.pass == Pass::forward && tensors.lse.given() && !habits().gives_lse)
    throw Unsupported(full_name(*this), {"the LSE"});
  if (workspace_bytes < plan.workspace_bytes) {
    throw InvalidArgument("workspace", concat("has ", workspace_bytes, " bytes, the plan needs ",
                                              plan.workspace_bytes));
  }
  if (plan.workspace_bytes > 0 &&
      (workspace == nullptr || reinterpret_cast<std::uintptr_t>(workspace) % 64 != 0)) {
    throw InvalidArgument("workspace", "must be memory aligned to 64 bytes");
  }
  Span executing("library", "execute");
  executing.tell("workspace_bytes", static_cast<std::int64_t>(plan.workspace_bytes));
  execute(plan, with_plain_strides(tensors), workspace, stream);
}

}  // namespace strobe
