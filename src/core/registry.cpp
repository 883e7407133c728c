#include "strobe/registry.h"

#include "core/text.h"
#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe {

const char* version() {
  return STROBE_VERSION;
}

std::string full_name(const Implementation& implementation) {
  const bool cpu = implementation.device() == Device::Kind::cpu;
  return concat(cpu ? "" : "cuda:", implementation.name());
}

void Registry::add(std::unique_ptr<Implementation> implementation) {
  const std::scoped_lock lock(mutex_);
  for (const auto& known : implementations_) {
    if (full_name(*known) == full_name(*implementation)) {
      throw InvalidArgument("implementation",
                            concat("'", full_name(*known), "' is registered already"));
    }
  }
  implementations_.push_back(std::move(implementation));
}

std::vector<const Implementation*> Registry::all() const {
  const std::scoped_lock lock(mutex_);
  std::vector<const Implementation*> result;
  result.reserve(implementations_.size());
  for (const auto& implementation : implementations_) result.push_back(implementation.get());
  return result;
}

const Implementation& Registry::find(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto* implementation : all()) {
    if (implementation->name() == name || full_name(*implementation) == name)
      return *implementation;
    names.push_back(full_name(*implementation));
  }
  throw InvalidArgument("implementation",
                        concat("'", name, "' is not known; there are ", joined(names, ", ")));
}

const Implementation& Registry::best(const Problem& problem, Device device) const {
  problem.validate();
  std::vector<std::string> missing;
  for (const auto* implementation : all()) {
    if (implementation->device() != device.kind || implementation->habits().guest) continue;
    const Support support = implementation->supports(problem, {.device = device.index});
    if (support) return *implementation;
    missing.push_back(concat(implementation->name(), " lacks ", joined(support.missing, ", ")));
  }
  if (missing.empty()) missing.push_back(concat("this build has none for ", to_string(device)));
  throw Unsupported("every implementation", std::move(missing));
}

}  // namespace strobe
