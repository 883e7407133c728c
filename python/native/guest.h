#pragma once

#include <nanobind/nanobind.h>
#include <sched.h>

#include <cstdint>
#include <string>

#include "strobe/implementation.h"

namespace strobe::python {

namespace nb = nanobind;

/// How and where a guest is to compute, as Python sees it.
struct Conditions {
  std::string device{};     ///< "cpu" or "cuda:0"
  std::uintptr_t stream{};  ///< that its work is to be put on; 0 on the CPU
  int threads = 1;          ///< of the CPU
  bool deterministic = false;
  bool tf32 = false;
};

/// An implementation whose work is done in Python, by a `Peer` of strobe/peers. Whatever it raises
/// becomes one of our errors, and so a row of a table; what is no error, such as an interrupt, goes
/// through to Python.
class Guest final : public Implementation {
 public:
  Guest(nb::handle peer, Device::Kind device);

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }
  Device::Kind device() const override { return device_; }
  Support supports(const Problem& problem, const PlanOptions& /*options*/) const override;
  void deliver(const Plan& plan, const Tensors& tensors, Stream stream) const override;
  Habits habits() const override;

 private:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override;
  void execute(const Plan& plan, const Tensors& tensors, void* workspace,
               Stream stream) const override;

  /// What computes on these tensors, made when they are seen for the first time.
  nb::object run_on(const Plan& plan, const Tensors& tensors, Stream stream) const;

  nb::handle peer_;  ///< never given back: the registry outlives the interpreter
  std::string name_, summary_;
  Device::Kind device_;
  cpu_set_t cores_{};  ///< of this process, before anything is pinned
};

}  // namespace strobe::python
