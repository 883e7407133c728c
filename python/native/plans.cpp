#include "plans.h"

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "strobe/error.h"
#include "strobe/registry.h"

namespace strobe::python {
namespace {

/// More than a model has shapes; comparing as many keys takes less than a microsecond.
constexpr std::size_t kMostPlans = 64;

/// By a plain name that of the device, "flash" for "cuda:flash" where the arrays are on a GPU.
const Implementation& choose(const PlanKey& key) {
  const Registry& registry = Registry::instance();
  if (key.implementation.empty()) return registry.best(key.problem, key.device);
  for (const auto* implementation : registry.all()) {
    if (implementation->device() == key.device.kind &&
        implementation->name() == key.implementation && !implementation->habits().guest)
      return *implementation;
  }
  const Implementation& found = registry.find(key.implementation);
  if (found.habits().guest) {
    throw InvalidArgument("implementation",
                          concat("is ", full_name(found), ", which is there to be compared with"));
  }
  if (found.device() != key.device.kind) {
    throw InvalidArgument("implementation",
                          concat("is ", full_name(found), ", but q is on ", to_string(key.device)));
  }
  return found;
}

std::shared_ptr<const Planned> make(const PlanKey& key) {
  const Implementation& implementation = choose(key);
  return std::make_shared<const Planned>(Planned{
      &implementation, implementation.plan(key.problem, {.threads = key.threads,
                                                         .device = key.device.index,
                                                         .tf32 = key.tf32,
                                                         .deterministic = key.deterministic})});
}

}  // namespace

std::shared_ptr<const Planned> Plans::plan(const PlanKey& key) {
  // A seed of dropout is seldom seen twice.
  if (key.problem.dropout > 0) return make(key);
  if (auto found = find(key)) return found;
  auto made = make(key);  // others may go on: a GPU's kernel takes a while to compile
  keep(key, made);
  return made;
}

std::shared_ptr<const Planned> Plans::find(const PlanKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::find_if(latest_first_.begin(), latest_first_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found == latest_first_.end()) return nullptr;
  latest_first_.splice(latest_first_.begin(), latest_first_, found);
  return found->planned;
}

void Plans::keep(const PlanKey& key, const std::shared_ptr<const Planned>& planned) {
  const std::scoped_lock lock(mutex_);
  latest_first_.push_front({key, planned});
  if (latest_first_.size() > kMostPlans) latest_first_.pop_back();
}

void Plans::clear() {
  const std::scoped_lock lock(mutex_);
  latest_first_.clear();
}

Plans& plans() {
  static auto* const all = new Plans;  // for the same reason as workspaces()
  return *all;
}

}  // namespace strobe::python
