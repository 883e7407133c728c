// strobe._laboratory: the program, with implementations in Python beside the others.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <memory>

#include "cli/run.h"
#include "errors.h"
#include "guest.h"
#include "strobe/registry.h"
#include "workload/setting.h"

namespace strobe::python {
namespace {

using Arguments = std::vector<std::string>;

void join(nb::handle peer, std::string_view device) {
  const auto kind = device == "cpu" ? Device::Kind::cpu : Device::Kind::cuda;
  Registry::instance().add(std::make_unique<Guest>(peer, kind));
}

int run(const std::string& program, const Arguments& arguments) {
  const nb::gil_scoped_release others_may_run;
  return cli::run({program, arguments});
}

int run_and_report(const std::string& program, const Arguments& arguments) {
  const nb::gil_scoped_release others_may_run;
  const int status = cli::run_and_report({program, arguments});
  std::fflush(stdout);  // before Python writes there, or ends without
  return status;
}

std::vector<std::string_view> setting_names() {
  std::vector<std::string_view> names;
  for (const lab::Setting& setting : lab::settings()) names.push_back(setting.name);
  return names;
}

void translate_wrong_usage(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const cli::WrongUsage& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  }
}

void define_problem(nb::module_& module) {
  nb::class_<Problem>(module, "Problem")
      .def("__init__",
           [](Problem* self, std::string_view text) { new (self) Problem(Problem::parse(text)); })
      .def("__str__", &Problem::text)
      .def_prop_ro("backward", [](const Problem& p) { return p.pass == Pass::backward; })
      .def_ro("batch", &Problem::batch)
      .def_ro("seqlen_q", &Problem::seqlen_q)
      .def_prop_ro("seqlen_k", &Problem::keys)
      .def_ro("heads", &Problem::heads)
      .def_prop_ro("heads_k", &Problem::kv_heads)
      .def_ro("dim", &Problem::dim)
      .def_prop_ro("dim_v", &Problem::value_dim)
      .def_prop_ro("dtype", [](const Problem& p) { return name_of(p.dtype); })
      .def_prop_ro("scale", &Problem::softmax_scale)
      .def_ro("causal", &Problem::causal)
      .def_prop_ro("window",
                   [](const Problem& p) { return std::pair(p.window.left, p.window.right); })
      .def_prop_ro("effective_window",
                   [](const Problem& p) {
                     const Window window = p.effective_window();
                     return std::pair(window.left, window.right);
                   })
      .def_ro("softcap", &Problem::softcap)
      .def_ro("alibi", &Problem::alibi)
      .def_ro("sinks", &Problem::sinks)
      .def_prop_ro("bias", [](const Problem& p) { return p.bias.has_value(); })
      .def_ro("dropout", &Problem::dropout)
      .def_prop_ro("varlen", &Problem::varlen)
      .def_ro("lengths_q", &Problem::lengths_q)
      .def_ro("lengths_k", &Problem::lengths_k);
}

}  // namespace
}  // namespace strobe::python

NB_MODULE(_laboratory, module) {
  using namespace strobe::python;
  nb::set_leak_warnings(false);  // guests stay in the registry, with what they hold
  nb::register_exception_translator(translate);
  nb::register_exception_translator(translate_wrong_usage);
  define_problem(module);
  nb::class_<Conditions>(module, "Conditions")
      .def_ro("device", &Conditions::device)
      .def_ro("stream", &Conditions::stream)
      .def_ro("threads", &Conditions::threads)
      .def_ro("deterministic", &Conditions::deterministic)
      .def_ro("tf32", &Conditions::tf32);
  module.def("join", join);
  module.def("run", run);
  module.def("run_and_report", run_and_report);
  module.def("setting_names", setting_names);
}
