#include "guest.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "arrays.h"
#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe::python {
namespace {

constexpr std::pair<const char*, TensorView Tensors::*> kArrays[] = {
    {"q", &Tensors::q},
    {"k", &Tensors::k},
    {"v", &Tensors::v},
    {"out", &Tensors::out},
    {"bias", &Tensors::bias},
    {"sinks", &Tensors::sinks},
    {"alibi_slopes", &Tensors::alibi_slopes},
    {"cu_seqlens_q", &Tensors::cu_seqlens_q},
    {"cu_seqlens_k", &Tensors::cu_seqlens_k},
    {"dout", &Tensors::dout},
    {"dq", &Tensors::dq},
    {"dk", &Tensors::dk},
    {"dv", &Tensors::dv},
    {"dbias", &Tensors::dbias},
    {"dsinks", &Tensors::dsinks},
};

/// What a plan keeps: a run for every set of tensors that it was given. The interpreter's lock
/// guards it.
struct Prepared {
  Conditions conditions{};
  std::vector<std::pair<Tensors, nb::object>> runs{};
};

Prepared& prepared_in(const Plan& plan) {
  return *static_cast<Prepared*>(const_cast<void*>(plan.state.get()));
}

bool same_memory(const Tensors& a, const Tensors& b) {
  return std::all_of(std::begin(kArrays), std::end(kArrays), [&](const auto& array) {
    return (a.*array.second).data == (b.*array.second).data;
  });
}

[[noreturn]] void rethrow_as_ours(const nb::python_error& error, const std::string& who) {
  if (!error.matches(PyExc_Exception)) throw nb::python_error(error);
  const std::string text = nb::str(error.value()).c_str();
  std::string sentence = text.substr(0, text.find('\n'));  // of PyTorch's, the rest is its stack
  if (error.matches(PyExc_MemoryError)) throw OutOfMemory(sentence);
  if (error.matches(PyExc_NotImplementedError)) throw Unsupported(who, {sentence});
  throw Error(std::string(nb::str(error.type().attr("__name__")).c_str()) + ": " + sentence);
}

/// Does something that calls Python, with the interpreter's lock.
template <class Body>
auto in_python(const std::string& who, const Body& body) {
  const nb::gil_scoped_acquire lock;
  try {
    return body();
  } catch (const nb::python_error& error) {
    rethrow_as_ours(error, who);
  } catch (const nb::cast_error&) {
    throw Error(who + " answered with something of another type than strobe.peers.Peer says");
  }
}

nb::dict arrays_of(const Tensors& tensors) {
  nb::dict arrays;
  for (const auto& [name, member] : kArrays) {
    if ((tensors.*member).given()) arrays[name] = array_of(tensors.*member);
  }
  return arrays;
}

/// While it lives, the calling thread may run on these cores, and so may threads that begin.
class OnCores {
 public:
  explicit OnCores(const cpu_set_t& cores) {
    sched_getaffinity(0, sizeof before_, &before_);
    sched_setaffinity(0, sizeof cores, &cores);
  }
  ~OnCores() { sched_setaffinity(0, sizeof before_, &before_); }
  OnCores(const OnCores&) = delete;
  OnCores& operator=(const OnCores&) = delete;

 private:
  cpu_set_t before_{};
};

}  // namespace

Guest::Guest(nb::handle peer, Device::Kind device)
    : peer_(peer.inc_ref()),
      name_(nb::cast<std::string>(peer.attr("name"))),
      summary_(nb::cast<std::string>(peer.attr("summary"))),
      device_(device) {
  sched_getaffinity(0, sizeof cores_, &cores_);
}

Habits Guest::habits() const {
  return {.guest = true, .recordable = false, .gives_lse = false};
}

Support Guest::supports(const Problem& problem, const PlanOptions& /*options*/) const try {
  return in_python(name_, [&]() -> Support {
    const char* const kind = device_ == Device::Kind::cpu ? "cpu" : "cuda";
    return {nb::cast<std::vector<std::string>>(peer_.attr("missing")(problem, kind))};
  });
} catch (const Error& error) {
  return {{error.what()}};
}

Plan Guest::make_plan(const Problem& problem, const PlanOptions& options) const {
  const int threads = options.threads > 0 ? options.threads : machine().cores;
  Plan plan{.problem = problem, .deterministic = false};
  plan.tuning.emplace_back(
      "library", in_python(name_, [&] { return nb::cast<std::string>(peer_.attr("library")); }));
  if (device_ == Device::Kind::cpu) plan.tuning.emplace_back("threads", std::to_string(threads));
  const Conditions conditions{.device = to_string({device_, options.device}),
                              .threads = threads,
                              .deterministic = options.deterministic,
                              .tf32 = options.tf32};
  plan.state = std::shared_ptr<const void>(new Prepared{conditions, {}}, [](const void* held) {
    const nb::gil_scoped_acquire lock;
    delete static_cast<const Prepared*>(held);
  });
  return plan;
}

/// The first call of a run is part of preparing it: libraries start their threads and compile their
/// kernels then. Threads inherit the cores of who starts them, so it must not be pinned.
nb::object Guest::run_on(const Plan& plan, const Tensors& tensors, Stream stream) const {
  Prepared& prepared = prepared_in(plan);
  for (const auto& [known, run] : prepared.runs) {
    if (same_memory(known, tensors)) return run;
  }
  const OnCores unpinned(cores_);
  Conditions conditions = prepared.conditions;
  conditions.stream = reinterpret_cast<std::uintptr_t>(stream);
  nb::object run = peer_.attr("prepare")(plan.problem, arrays_of(tensors), conditions);
  run();
  prepared.runs.emplace_back(tensors, run);
  return run;
}

void Guest::execute(const Plan& plan, const Tensors& tensors, void* /*workspace*/,
                    Stream stream) const {
  in_python(name_, [&] { run_on(plan, tensors, stream)(); });
}

void Guest::deliver(const Plan& plan, const Tensors& tensors, Stream stream) const {
  // The library's threads spin for a while, on the cores of whoever is timed next.
  constexpr std::chrono::milliseconds kUntilTheySleep{20};
  const bool delivered = in_python(
      name_, [&] { return nb::cast<bool>(run_on(plan, tensors, stream).attr("deliver")()); });
  if (delivered && device_ == Device::Kind::cpu) std::this_thread::sleep_for(kUntilTheySleep);
}

}  // namespace strobe::python
