#include "call.h"

#include <chrono>

#include "problem.h"
#include "strobe/error.h"
#include "workspaces.h"

namespace strobe::python {
namespace {

struct Input {
  std::string_view name;
  TensorView Tensors::*member;
  bool optional = false;
};

constexpr Input kInputs[] = {
    {"q", &Tensors::q},
    {"k", &Tensors::k},
    {"v", &Tensors::v},
    {"out", &Tensors::out},
    {"lse", &Tensors::lse},
    {"dout", &Tensors::dout},
    {"bias", &Tensors::bias, true},
    {"sinks", &Tensors::sinks, true},
    {"alibi_slopes", &Tensors::alibi_slopes, true},
    {"cu_seqlens_q", &Tensors::cu_seqlens_q, true},
    {"cu_seqlens_k", &Tensors::cu_seqlens_k, true},
};

Tensors read_inputs(const nb::dict& arrays, Views& views) {
  Tensors inputs;
  for (const auto& [key, array] : arrays) {
    const std::string_view name = nb::cast<const char*>(key);
    for (const Input& input : kInputs) {
      if (input.name != name || (input.optional && array.is_none())) continue;
      inputs.*input.member = views.view(name, array);
    }
  }
  if (inputs.cu_seqlens_k.rank == 0) inputs.cu_seqlens_k = inputs.cu_seqlens_q;
  return inputs;
}

std::vector<std::int64_t> shape_of(const TensorView& view) {
  return {view.shape.begin(), view.shape.begin() + view.rank};
}

}  // namespace

Call::Call(nb::handle library, const nb::dict& arrays, const nb::dict& settings, Pass pass)
    : library_(library, nb::object(arrays["q"])),
      views_(library_),
      tensors_(read_inputs(arrays, views_)),
      settings_(read_settings(settings)),
      key_{.problem = problem_of(tensors_, settings_, pass),
           .implementation = settings_.implementation,
           .device = tensors_.q.device,
           .threads = settings_.threads,
           .deterministic = settings_.deterministic,
           .tf32 = settings_.tf32} {}

nb::object Call::result(const char* name, TensorView& view, const std::vector<std::int64_t>& shape,
                        bool fp32) {
  nb::object array = library_.empty(shape, fp32 ? "float32" : nullptr);
  view = views_.view(name, array);
  return array;
}

nb::object Call::result_like(const char* name, TensorView& view, const TensorView& like) {
  return result(name, view, shape_of(like), like.dtype != tensors_.q.dtype);
}

nb::tuple Call::forward() {
  const Problem& problem = key_.problem;
  std::vector<std::int64_t> shape = shape_of(tensors_.q);
  shape.back() = problem.value_dim();
  const nb::object out = result("out", tensors_.out, shape, false);
  nb::object lse = nb::none();
  if (settings_.return_lse) {
    lse = problem.varlen()
              ? result("lse", tensors_.lse, {problem.heads, tensors_.q.shape[0]}, true)
              : result("lse", tensors_.lse, {problem.batch, problem.heads, problem.seqlen_q}, true);
  }
  run();
  return nb::make_tuple(library_.give(out), library_.give(lse));
}

double Call::time_alone(int calls) {
  if (key_.device.kind != Device::Kind::cpu) throw InvalidArgument("q", "is not on the CPU");
  const nb::tuple results = forward();  // which the calls below write again
  const nb::gil_scoped_release others_may_run;
  const auto planned = plans().plan(key_);
  const std::size_t bytes = planned->plan.workspace_bytes;
  const Memory workspace = workspaces().take(bytes);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i)
    planned->implementation->run(planned->plan, tensors_, workspace.get(), bytes);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

nb::tuple Call::backward() {
  const nb::object dq = result_like("dq", tensors_.dq, tensors_.q);
  const nb::object dk = result_like("dk", tensors_.dk, tensors_.k);
  const nb::object dv = result_like("dv", tensors_.dv, tensors_.v);
  nb::object dbias = nb::none(), dsinks = nb::none();
  if (settings_.bias_gradient) dbias = result_like("dbias", tensors_.dbias, tensors_.bias);
  if (settings_.sinks_gradient) dsinks = result_like("dsinks", tensors_.dsinks, tensors_.sinks);
  run();
  return nb::make_tuple(library_.give(dq), library_.give(dk), library_.give(dv),
                        library_.give(dbias), library_.give(dsinks));
}

void Call::run() {
  std::shared_ptr<const Planned> planned;
  {
    const nb::gil_scoped_release others_may_run;
    planned = plans().plan(key_);
    if (key_.device.kind == Device::Kind::cpu) {
      const Plan& plan = planned->plan;
      const Memory workspace = workspaces().take(plan.workspace_bytes);
      planned->implementation->run(plan, tensors_, workspace.get(), plan.workspace_bytes);
      return;
    }
  }
  run_on_gpu(*planned);
}

/// The workspace is the library's, which knows when what is ordered on its stream is done with it.
void Call::run_on_gpu(const Planned& planned) {
  const Stream stream = library_.stream();
  const auto bytes = static_cast<std::int64_t>(planned.plan.workspace_bytes);
  TensorView workspace;
  nb::object held;
  if (bytes > 0) {
    held = library_.empty({bytes}, "uint8");
    workspace = views_.view("workspace", held);
  }
  const nb::gil_scoped_release others_may_run;
  planned.implementation->run(planned.plan, tensors_, workspace.data, planned.plan.workspace_bytes,
                              stream);
}

}  // namespace strobe::python
