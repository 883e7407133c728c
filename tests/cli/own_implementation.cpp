#include "cli/own_implementation.h"

#include <gtest/gtest.h>

#include <memory>

#include "cli/run.h"
#include "strobe/registry.h"

namespace strobe::test {
namespace {

class OwnImplementation final : public Implementation {
 public:
  OwnImplementation(std::string name, Compute how, const Habits& its_habits)
      : name_(std::move(name)), compute_(how), habits_(its_habits) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "for tests"; }
  Device::Kind device() const override { return Device::Kind::cpu; }
  Support supports(const Problem&, const PlanOptions&) const override { return {}; }
  Habits habits() const override { return habits_; }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions&) const override {
    return {.problem = problem};
  }
  void execute(const Plan& plan, const Tensors& tensors, void*, Stream) const override {
    compute_(plan, tensors);
  }

 private:
  std::string name_;
  Compute compute_;
  Habits habits_;
};

}  // namespace

void add_own_implementation(const std::string& name, Compute how, const Habits& habits) {
  for (const Implementation* known : Registry::instance().all()) {
    if (known->name() == name) return;
  }
  Registry::instance().add(std::make_unique<OwnImplementation>(name, how, habits));
}

void compute_by_oracle(const Plan& plan, const Tensors& tensors) {
  const Implementation& oracle = Registry::instance().find("oracle");
  oracle.run(oracle.plan(plan.problem), tensors, nullptr, 0);
}

Outcome run_here(const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = cli::run_and_report({.arguments = arguments});
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

}  // namespace strobe::test
