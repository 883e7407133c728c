#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <new>
#include <string>

#include "core/text.h"
#include "strobe/error.h"
#include "strobe/machine.h"
#include "strobe/registry.h"
#include "strobe/strobe.h"
#include "strobe/threads.h"

struct strobe_plan {
  const strobe::Implementation* implementation;
  strobe::Plan plan;
  std::string description;
};

namespace {

using namespace strobe;

static_assert(STROBE_MAX_RANK == TensorView::kMaxRank);
static_assert(STROBE_INT32 == static_cast<int>(DType::int32));
static_assert(STROBE_QKVPACKED == static_cast<int>(Layout::qkvpacked));
static_assert(STROBE_BACKWARD == static_cast<int>(Pass::backward));
static_assert(STROBE_CUDA == static_cast<int>(Device::Kind::cuda));
static_assert(STROBE_REFERENCE_RUNNING == static_cast<int>(SoftmaxReference::running));
static_assert(STROBE_REFERENCE_FIXED == static_cast<int>(SoftmaxReference::fixed));

thread_local std::string last_error;

strobe_status fail(strobe_status status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

/// Runs `body` and turns what it throws into a status and a message.
template <class Body>
strobe_status guarded(Body&& body) noexcept {
  try {
    body();
    return STROBE_OK;
  } catch (const InvalidArgument& error) {
    return fail(STROBE_INVALID_ARGUMENT, error.what());
  } catch (const Unsupported& error) {
    return fail(STROBE_UNSUPPORTED, error.what());
  } catch (const OutOfMemory& error) {
    return fail(STROBE_OUT_OF_MEMORY, error.what());
  } catch (const std::bad_alloc&) {
    return fail(STROBE_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return fail(STROBE_INTERNAL, error.what());
  } catch (...) {
    return fail(STROBE_INTERNAL, "unknown error");
  }
}

template <class T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw InvalidArgument(name, "is null");
  return *pointer;
}

/// An enum value that came as an int.
template <class Enum>
Enum checked_enum(const char* field, int value, Enum last) {
  if (value < 0 || value > static_cast<int>(last)) {
    throw InvalidArgument(field,
                          concat("is ", value, ", allowed is 0 to ", static_cast<int>(last)));
  }
  return static_cast<Enum>(value);
}

/// -1 stands for "not set"; other negative values go on and are rejected by validation.
std::optional<std::int64_t> optional_size(std::int64_t value) {
  return value == -1 ? std::nullopt : std::optional(value);
}

/// None of a batch that Problem::validate will refuse.
std::vector<std::int64_t> copy_lengths(const std::int64_t* lengths, std::int64_t batch) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (lengths == nullptr || batch < 0 || batch > kMost) return {};
  return {lengths, lengths + batch};
}

std::optional<Bias> to_bias(int axes) {
  if (axes == 0) return std::nullopt;
  constexpr int kAll = STROBE_BIAS_BATCH | STROBE_BIAS_HEAD | STROBE_BIAS_QUERY | STROBE_BIAS_KEY;
  if ((axes & ~kAll) != 0 || (axes & STROBE_BIAS_KEY) == 0) {
    throw InvalidArgument(
        "bias",
        concat("is ", axes, ", allowed is 0 or a sum of STROBE_BIAS_* with STROBE_BIAS_KEY"));
  }
  return Bias{(axes & STROBE_BIAS_BATCH) != 0, (axes & STROBE_BIAS_HEAD) != 0,
              (axes & STROBE_BIAS_QUERY) != 0};
}

/// The size that a struct says it has.
void check_size(const char* field, std::size_t size, std::size_t known, const char* init) {
  if (size != known) {
    throw InvalidArgument(
        field, concat("is ", size, ", this library knows ", known, "; start from ", init));
  }
}

Problem to_problem(const strobe_problem* pointer) {
  const strobe_problem& from = required(pointer, "problem");
  check_size("problem.struct_size", from.struct_size, sizeof from, "strobe_problem_init");
  Problem problem{
      .pass = checked_enum("pass", from.pass, Pass::backward),
      .batch = from.batch,
      .seqlen_q = from.seqlen_q,
      .seqlen_k = optional_size(from.seqlen_k),
      .heads = from.heads,
      .heads_k = optional_size(from.heads_k),
      .dim = from.dim,
      .dim_v = optional_size(from.dim_v),
      .dtype = checked_enum("dtype", from.dtype, DType::int32),
      .layout = checked_enum("layout", from.layout, Layout::qkvpacked),
      .scale = std::isnan(from.scale) ? std::nullopt : std::optional(from.scale),
      .causal = from.causal != 0,
      .window = {from.window_left, from.window_right},
      .softcap = from.softcap,
      .alibi = from.alibi != 0,
      .sinks = from.sinks != 0,
      .bias = to_bias(from.bias),
      .dropout = from.dropout,
      .dropout_seed = from.dropout_seed,
      .lengths_q = copy_lengths(from.lengths_q, from.batch),
      .lengths_k = copy_lengths(from.lengths_k, from.batch),
  };
  problem.validate();
  return problem;
}

TensorView to_view(const strobe_tensor& from, const char* name) {
  TensorView view;
  view.data = from.data;
  if (from.data == nullptr && from.rank == 0) return view;
  view.dtype = checked_enum(name, from.dtype, DType::int32);
  view.device = {checked_enum(name, from.device, Device::Kind::cuda), from.device_index};
  if (from.rank < 0 || from.rank > STROBE_MAX_RANK) {
    throw InvalidArgument(name, concat("has rank ", from.rank, ", allowed is 0 to ",
                                       static_cast<int>(STROBE_MAX_RANK)));
  }
  view.rank = from.rank;
  std::copy(from.shape, from.shape + STROBE_MAX_RANK, view.shape.begin());
  std::copy(from.strides, from.strides + STROBE_MAX_RANK, view.strides.begin());
  return view;
}

Tensors to_tensors(const strobe_tensors& from) {
  return {.q = to_view(from.q, "q"),
          .k = to_view(from.k, "k"),
          .v = to_view(from.v, "v"),
          .out = to_view(from.out, "out"),
          .lse = to_view(from.lse, "lse"),
          .bias = to_view(from.bias, "bias"),
          .sinks = to_view(from.sinks, "sinks"),
          .alibi_slopes = to_view(from.alibi_slopes, "alibi_slopes"),
          .cu_seqlens_q = to_view(from.cu_seqlens_q, "cu_seqlens_q"),
          .cu_seqlens_k = to_view(from.cu_seqlens_k, "cu_seqlens_k"),
          .dout = to_view(from.dout, "dout"),
          .dq = to_view(from.dq, "dq"),
          .dk = to_view(from.dk, "dk"),
          .dv = to_view(from.dv, "dv"),
          .dbias = to_view(from.dbias, "dbias"),
          .dsinks = to_view(from.dsinks, "dsinks")};
}

PlanOptions to_options(const strobe_plan_options& from) {
  return {.threads = from.threads,
          .device = from.device_index,
          .tf32 = from.tf32 != 0,
          .deterministic = from.deterministic != 0,
          .reference = checked_enum("options.reference", from.reference, SoftmaxReference::fixed),
          .variant = from.variant == nullptr ? "" : from.variant};
}

/// Names that live as long as the library. Implementations are added, never taken away.
const char* lasting_name(std::size_t index) {
  static std::mutex mutex;
  static auto* const names = new std::deque<std::string>;
  const std::scoped_lock lock(mutex);
  const auto all = Registry::instance().all();
  while (names->size() < all.size()) names->push_back(full_name(*all[names->size()]));
  return index < names->size() ? (*names)[index].c_str() : nullptr;
}

std::string describe(const Implementation& implementation, const Plan& plan) {
  std::string out = full_name(implementation);
  for (const auto& [key, value] : plan.tuning) out += concat(" ", key, "=", value);
  return out;
}

}  // namespace

const char* strobe_version() {
  return version();
}

const char* strobe_last_error() {
  return last_error.c_str();
}

void strobe_problem_init(strobe_problem* problem) {
  if (problem == nullptr) return;
  const Problem defaults;
  std::memset(problem, 0, sizeof *problem);
  problem->struct_size = sizeof *problem;
  problem->dtype = static_cast<std::int32_t>(defaults.dtype);
  problem->batch = defaults.batch;
  problem->heads = defaults.heads;
  problem->dim = defaults.dim;
  problem->seqlen_k = problem->heads_k = problem->dim_v = -1;
  problem->window_left = problem->window_right = -1;
  problem->scale = std::nan("");
}

strobe_status strobe_problem_validate(const strobe_problem* problem) {
  return guarded([&] { to_problem(problem); });
}

strobe_status strobe_problem_text(const strobe_problem* problem, char* buffer, size_t size,
                                  size_t* needed) {
  return guarded([&] {
    const std::string text = to_problem(problem).text();
    if (needed != nullptr) *needed = text.size() + 1;
    if (buffer == nullptr || size < text.size() + 1) {
      throw InvalidArgument("buffer", concat("has ", buffer == nullptr ? 0 : size, " bytes, ",
                                             text.size() + 1, " are needed"));
    }
    std::memcpy(buffer, text.c_str(), text.size() + 1);
  });
}

const char* strobe_implementation_name(size_t index) {
  const char* name = nullptr;
  guarded([&] { name = lasting_name(index); });
  return name;
}

strobe_status strobe_supports(const strobe_problem* problem, const char* implementation) {
  return guarded([&] {
    const Implementation& found =
        Registry::instance().find(&required(implementation, "implementation"));
    if (auto support = found.supports(to_problem(problem)); !support) {
      throw Unsupported(implementation, std::move(support.missing));
    }
  });
}

void strobe_plan_options_init(strobe_plan_options* options) {
  if (options == nullptr) return;
  std::memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

strobe_status strobe_plan_create_with(const strobe_problem* problem, const char* implementation,
                                      const strobe_plan_options* options, strobe_plan** plan) {
  return guarded([&] {
    required(plan, "plan") = nullptr;
    const Problem wanted = to_problem(problem);
    const strobe_plan_options& given = required(options, "options");
    check_size("options.struct_size", given.struct_size, sizeof given, "strobe_plan_options_init");
    const Device device{checked_enum("options.device", given.device, Device::Kind::cuda),
                        given.device_index};
    const Registry& registry = Registry::instance();
    const Implementation& chosen =
        implementation == nullptr ? registry.best(wanted, device) : registry.find(implementation);
    Plan made = chosen.plan(wanted, to_options(given));
    std::string description = describe(chosen, made);
    *plan = new strobe_plan{&chosen, std::move(made), std::move(description)};
  });
}

strobe_status strobe_plan_create(const strobe_problem* problem, const char* implementation,
                                 int32_t threads, strobe_plan** plan) {
  strobe_plan_options options;
  strobe_plan_options_init(&options);
  options.threads = threads;
  return strobe_plan_create_with(problem, implementation, &options, plan);
}

void strobe_plan_destroy(strobe_plan* plan) {
  delete plan;
}

size_t strobe_plan_workspace_bytes(const strobe_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.workspace_bytes;
}

const char* strobe_plan_description(const strobe_plan* plan) {
  return plan == nullptr ? "" : plan->description.c_str();
}

strobe_status strobe_run(const strobe_plan* plan, const strobe_tensors* tensors, void* workspace,
                         size_t workspace_bytes, void* stream) {
  return guarded([&] {
    const strobe_plan& planned = required(plan, "plan");
    planned.implementation->run(planned.plan, to_tensors(required(tensors, "tensors")), workspace,
                                workspace_bytes, stream);
  });
}

void strobe_set_executor(strobe_executor executor, void* context) {
  set_executor({.run = executor, .context = context});
}
