// strobe._native: what the package strobe calls.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "call.h"
#include "errors.h"
#include "strobe/accelerator.h"
#include "strobe/cuda.h"
#include "strobe/machine.h"
#include "strobe/registry.h"
#include "workspaces.h"

namespace strobe::python {
namespace {

/// Which implementation computes it and how, and why those before it do not.
nb::dict explain(nb::handle library, const nb::dict& arrays, const nb::dict& settings,
                 bool backward) {
  const Call call(library, arrays, settings, backward ? Pass::backward : Pass::forward);
  const auto planned = [&] {
    const nb::gil_scoped_release others_may_run;
    return plans().plan(call.key());
  }();
  const Problem& problem = call.key().problem;
  const PlanOptions options{.device = call.key().device.index};
  nb::dict passed_over;
  for (const auto* implementation : Registry::instance().all()) {
    if (implementation == planned->implementation) break;
    if (implementation->device() != call.key().device.kind) continue;
    passed_over[full_name(*implementation).c_str()] =
        nb::cast(implementation->supports(problem, options).missing);
  }
  nb::dict tuning;
  for (const auto& [name, value] : planned->plan.tuning) tuning[name.c_str()] = value;
  nb::dict result;
  result["problem"] = problem.text();
  result["device"] = to_string(call.key().device);
  result["implementation"] = full_name(*planned->implementation);
  result["summary"] = planned->implementation->summary();
  result["kernel"] = planned->implementation->supports(problem, options).kernel;
  result["tuning"] = tuning;
  result["workspace_bytes"] = planned->plan.workspace_bytes;
  result["passed_over"] = passed_over;
  return result;
}

nb::dict implementations() {
  nb::dict result;
  for (const auto* implementation : Registry::instance().all())
    result[full_name(*implementation).c_str()] = implementation->summary();
  return result;
}

nb::dict info() {
  const Machine here = machine();
  const CudaStatus cuda = cuda_status();
  nb::list gpus;
  for (const CudaDevice& device : cuda.devices) gpus.append(nb::cast(device.name));
  nb::dict result;
  result["version"] = version();
  result["cpu"] = here.cpu;
  result["isa"] = here.isa;
  result["threads"] = here.cores;
  result["gpus"] = gpus;
  result["nvrtc"] = cuda.nvrtc.path;
  result["no_gpu_because"] = cuda.unavailable;
  return result;
}

Device cpu_or(std::optional<int> gpu) {
  return gpu ? Device{Device::Kind::cuda, *gpu} : Device{};
}

}  // namespace
}  // namespace strobe::python

NB_MODULE(_native, module) {
  using namespace strobe;
  using namespace strobe::python;
  nb::register_exception_translator(translate);

  module.def("forward", [](nb::handle library, const nb::dict& arrays, const nb::dict& settings) {
    return Call(library, arrays, settings, Pass::forward).forward();
  });
  module.def("backward", [](nb::handle library, const nb::dict& arrays, const nb::dict& settings) {
    return Call(library, arrays, settings, Pass::backward).backward();
  });
  module.def("time_alone",
             [](nb::handle library, const nb::dict& arrays, const nb::dict& settings, int calls) {
               return Call(library, arrays, settings, Pass::forward).time_alone(calls);
             });
  module.def("explain", explain);
  module.def("implementations", implementations);
  module.def("info", info);
  module.def("version", version);
  module.def("clear_cache", [] {
    plans().clear();
    workspaces().clear();
  });

  // For libraries whose arrays are not ours to write: see strobe/_libraries.py.
  module.def("empty", [](const std::vector<std::int64_t>& shape, std::string_view dtype,
                         std::optional<int> gpu) {
    return empty_array(shape, *parse_dtype(dtype), cpu_or(gpu));
  });
  module.def("stream", [](int gpu) {
    return reinterpret_cast<std::uintptr_t>(accelerator({Device::Kind::cuda, gpu}).stream());
  });
  module.def("wait", [](int gpu) {
    const nb::gil_scoped_release others_may_run;
    accelerator({Device::Kind::cuda, gpu}).wait();
  });
}
