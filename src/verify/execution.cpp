#include "verify/execution.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "strobe/accelerator.h"
#include "strobe/error.h"
#include "verify/buffer.h"
#include "verify/mirror.h"

namespace strobe::lab {
namespace {

Problem with_pass(Problem problem, Pass pass) {
  problem.pass = pass;
  return problem;
}

class HostExecution final : public Execution {
 public:
  HostExecution(const Implementation& implementation, Operands& operands, Pass pass,
                const PlanOptions& options)
      : Execution(implementation, operands, pass, options),
        operands_(operands),
        tensors_(tensors_for(implementation, operands, pass)),
        workspace_(plan_.workspace_bytes) {}

  void run() override {
    implementation_.compute(plan_, tensors_, workspace_.data(), workspace_.size());
  }
  void poison_outputs() override { operands_.poison_outputs(pass_); }
  void fetch() override { implementation_.deliver(plan_, tensors_); }
  std::string unwritten() override {
    fetch();
    return operands_.unwritten(pass_, tensors_);
  }
  std::string written() override { return operands_.written(pass_); }
  bool workspace_intact() const override { return workspace_.guards_intact(); }

 private:
  Operands& operands_;
  Tensors tensors_;
  Buffer workspace_;
};

class DeviceExecution final : public Execution {
 public:
  DeviceExecution(const Implementation& implementation, Operands& operands, Pass pass,
                  const PlanOptions& options, int copies)
      : Execution(implementation, operands, pass, options),
        operands_(operands),
        device_(accelerator(device_of(implementation, options))) {
    const std::int64_t free = device_.free_bytes();
    try {
      take_memory(copies);
    } catch (const OutOfMemory&) {  // of one buffer; what all of them need says more
      const auto copied = static_cast<std::size_t>(copies) * Mirror::bytes(operands);
      const auto needed = static_cast<double>(plan_.workspace_bytes + copied);
      throw OutOfMemory(fmt::format("{} is out of memory: needed {:.1f} MB, {:.1f} MB free",
                                    to_string(device_.device()), needed / 1e6,
                                    static_cast<double>(free) / 1e6));
    }
  }

  void run() override {
    last_ = std::exchange(next_, (next_ + 1) % copies_.size());
    implementation_.compute(plan_, copies_[last_].tensors, workspace_->data(),
                            plan_.workspace_bytes, device_.stream());
  }
  void poison_outputs() override {
    for (Copy& copy : copies_) copy.mirror.poison_outputs(pass_);
  }
  void fetch() override {
    deliver();
    device_.wait();
    copies_[last_].mirror.download();
  }
  std::string unwritten() override {
    const Copy& last = copies_[last_];
    if (looks_++ == 0) {
      fetch();
      return operands_.unwritten(pass_, last.tensors);
    }
    deliver();
    return last.mirror.unwritten_row(pass_, last.tensors, looks_);
  }
  std::string written() override {
    fetch();
    return operands_.written(pass_);
  }
  bool workspace_intact() const override { return workspace_->guards_intact(); }

 private:
  struct Copy {
    Mirror mirror;
    Tensors tensors;
  };

  void take_memory(int copies) {
    workspace_.emplace(device_, plan_.workspace_bytes);
    const Tensors on_host = tensors_for(implementation_, operands_, pass_);
    for (int i = 0; i < copies; ++i) {
      Mirror mirror(device_, operands_);
      const Tensors tensors = mirror.moved(on_host);
      copies_.push_back({std::move(mirror), tensors});
    }
  }

  void deliver() { implementation_.deliver(plan_, copies_[last_].tensors, device_.stream()); }

  Operands& operands_;
  const Accelerator& device_;
  std::optional<DeviceBuffer> workspace_{};
  std::vector<Copy> copies_{};
  std::size_t next_ = 0;
  std::size_t last_ = 0;  ///< the copy that the last run was on
  std::uint32_t looks_ = 0;
};

}  // namespace

Device device_of(const Implementation& implementation, const PlanOptions& options) {
  if (implementation.device() == Device::Kind::cpu) return {};
  return {.kind = implementation.device(), .index = options.device};
}

Tensors tensors_for(const Implementation& implementation, const Operands& operands, Pass pass) {
  Tensors tensors = operands.tensors(pass);
  if (pass == Pass::forward && !implementation.habits().gives_lse) tensors.lse = {};
  return tensors;
}

namespace {

/// A variant is one of the pass that the operands are for. A forward pass before that is cut as
/// usual.
PlanOptions options_for(Pass pass, const Operands& operands, PlanOptions options) {
  if (pass != operands.problem().pass) options.variant.clear();
  return options;
}

}  // namespace

Execution::Execution(const Implementation& implementation, const Operands& operands, Pass pass,
                     const PlanOptions& options)
    : implementation_(implementation),
      pass_(pass),
      plan_(implementation.plan(with_pass(operands.problem(), pass),
                                options_for(pass, operands, options))) {}

std::unique_ptr<Execution> Execution::make(const Implementation& implementation, Operands& operands,
                                           Pass pass, const PlanOptions& options, int copies) {
  if (implementation.device() == Device::Kind::cpu)
    return std::make_unique<HostExecution>(implementation, operands, pass, options);
  return std::make_unique<DeviceExecution>(implementation, operands, pass, options, copies);
}

void run_forward(const Implementation& implementation, Operands& operands,
                 const PlanOptions& options) {
  const auto forward = Execution::make(implementation, operands, Pass::forward, options);
  forward->run();
  forward->fetch();
}

}  // namespace strobe::lab
