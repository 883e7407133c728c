#include "measure/other_build.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "strobe/error.h"
#include "strobe/strobe.h"
#include "strobe/threads.h"

namespace strobe::lab {

/// What is called of the other library, found by name.
struct OtherBuild::Functions {
  explicit Functions(const std::string& path);
  ~Functions() { dlclose(handle); }
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  /// Turns a status of the other library into the exception that it was there.
  void check(strobe_status status, const std::string& who) const;

  void* handle;
  decltype(&strobe_last_error) last_error;
  decltype(&strobe_supports) supports;
  decltype(&strobe_plan_create) plan_create;
  decltype(&strobe_plan_destroy) plan_destroy;
  decltype(&strobe_plan_workspace_bytes) plan_workspace_bytes;
  decltype(&strobe_plan_description) plan_description;
  decltype(&strobe_run) run;
  decltype(&strobe::pin_threads) pin_threads;
};

namespace {

strobe_problem to_c(const Problem& p) {
  strobe_problem c{};
  c.struct_size = sizeof c;
  c.pass = static_cast<std::int32_t>(p.pass);
  c.dtype = static_cast<std::int32_t>(p.dtype);
  c.layout = static_cast<std::int32_t>(p.layout);
  c.causal = p.causal;
  c.batch = p.batch;
  c.seqlen_q = p.seqlen_q;
  c.seqlen_k = p.seqlen_k.value_or(-1);
  c.heads = p.heads;
  c.heads_k = p.heads_k.value_or(-1);
  c.dim = p.dim;
  c.dim_v = p.dim_v.value_or(-1);
  c.scale = p.scale.value_or(std::nan(""));
  c.window_left = p.window.left;
  c.window_right = p.window.right;
  c.softcap = p.softcap;
  c.alibi = p.alibi;
  c.sinks = p.sinks;
  if (p.bias) {
    c.bias = STROBE_BIAS_KEY | (p.bias->per_batch ? STROBE_BIAS_BATCH : 0) |
             (p.bias->per_head ? STROBE_BIAS_HEAD : 0) |
             (p.bias->per_query ? STROBE_BIAS_QUERY : 0);
  }
  c.dropout = p.dropout;
  c.dropout_seed = p.dropout_seed;
  c.lengths_q = p.varlen() ? p.lengths_q.data() : nullptr;
  c.lengths_k = p.varlen() ? p.lengths_k.data() : nullptr;
  return c;
}

strobe_tensor to_c(const TensorView& view) {
  strobe_tensor c{};
  c.data = view.data;
  c.dtype = static_cast<std::int32_t>(view.dtype);
  c.device = static_cast<std::int32_t>(view.device.kind);
  c.device_index = view.device.index;
  c.rank = view.rank;
  std::copy(view.shape.begin(), view.shape.end(), c.shape);
  std::copy(view.strides.begin(), view.strides.end(), c.strides);
  return c;
}

strobe_tensors to_c(const Tensors& t) {
  return {.q = to_c(t.q),
          .k = to_c(t.k),
          .v = to_c(t.v),
          .out = to_c(t.out),
          .lse = to_c(t.lse),
          .bias = to_c(t.bias),
          .sinks = to_c(t.sinks),
          .alibi_slopes = to_c(t.alibi_slopes),
          .cu_seqlens_q = to_c(t.cu_seqlens_q),
          .cu_seqlens_k = to_c(t.cu_seqlens_k),
          .dout = to_c(t.dout),
          .dq = to_c(t.dq),
          .dk = to_c(t.dk),
          .dv = to_c(t.dv),
          .dbias = to_c(t.dbias),
          .dsinks = to_c(t.dsinks)};
}

}  // namespace

OtherBuild::Functions::Functions(const std::string& path)
    : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle == nullptr) throw Error(fmt::format("'{}' cannot be loaded: {}", path, dlerror()));
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = dlsym(handle, name);
    if (symbol == nullptr) {
      dlclose(handle);
      throw Error(fmt::format("'{}' has no {}, so it is not a libstrobe of this kind", path, name));
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(last_error, "strobe_last_error");
  find(supports, "strobe_supports");
  find(plan_create, "strobe_plan_create");
  find(plan_destroy, "strobe_plan_destroy");
  find(plan_workspace_bytes, "strobe_plan_workspace_bytes");
  find(plan_description, "strobe_plan_description");
  find(run, "strobe_run");
  find(pin_threads, "_ZN6strobe11pin_threadsEb");  // C++, and not part of the C interface
  pin_threads(true);  // its threads are its own, and are only ever timed
}

void OtherBuild::Functions::check(strobe_status status, const std::string& who) const {
  switch (status) {
    case STROBE_OK:
      return;
    case STROBE_UNSUPPORTED:
      throw Unsupported(who, {last_error()});
    case STROBE_OUT_OF_MEMORY:
      throw OutOfMemory(last_error());
    default:
      throw Error(fmt::format("{}: {}", who, last_error()));
  }
}

namespace {

/// An implementation of the other build as one of this one.
template <class Functions>
class Adapter final : public Implementation {
 public:
  Adapter(const Functions& other, std::string name) : other_(other), name_(std::move(name)) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "the same, as another build has it"; }
  Device::Kind device() const override { return Device::Kind::cpu; }
  /// The program has another of this name, its own.
  Habits habits() const override { return {.guest = true}; }

  Support supports(const Problem& problem, const PlanOptions& /*options*/) const override {
    const strobe_problem c = to_c(problem);
    if (other_.supports(&c, name_.c_str()) == STROBE_OK) return {};
    return {{other_.last_error()}};
  }

 private:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    const strobe_problem c = to_c(problem);
    strobe_plan* made = nullptr;
    other_.check(other_.plan_create(&c, name_.c_str(), options.threads, &made), name_);
    return {.problem = problem,
            .tuning = {{"build", other_.plan_description(made)}},
            .workspace_bytes = other_.plan_workspace_bytes(made),
            .state = {made, [&other = other_](strobe_plan* plan) { other.plan_destroy(plan); }}};
  }

  void execute(const Plan& plan, const Tensors& tensors, void* workspace,
               Stream stream) const override {
    const strobe_tensors c = to_c(tensors);
    const auto* const made = static_cast<const strobe_plan*>(plan.state.get());
    other_.check(other_.run(made, &c, workspace, plan.workspace_bytes, stream), name_);
  }

  const Functions& other_;
  std::string name_;
};

}  // namespace

OtherBuild::OtherBuild(const std::string& path) : functions_(std::make_unique<Functions>(path)) {}

OtherBuild::~OtherBuild() = default;

std::unique_ptr<Implementation> OtherBuild::implementation(const std::string& name) const {
  return std::make_unique<Adapter<Functions>>(*functions_, name);
}

std::string library_path() {
  Dl_info library{};
  Dl_info program{};
  if (dladdr(reinterpret_cast<const void*>(&strobe_version), &library) == 0) return "";
  if (dladdr(reinterpret_cast<const void*>(&library_path), &program) == 0) return "";
  return std::string_view(library.dli_fname) == program.dli_fname ? "" : library.dli_fname;
}

}  // namespace strobe::lab
