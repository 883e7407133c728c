#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "strobe/export.h"
#include "strobe/implementation.h"

namespace strobe {

/// All implementations this process knows, in order of preference for each device.
class STROBE_API Registry {
 public:
  /// The process-wide registry, filled with the built-in implementations.
  static Registry& instance();

  /// Takes ownership. Throws InvalidArgument if the name is taken on that device.
  void add(std::unique_ptr<Implementation> implementation);

  std::vector<const Implementation*> all() const;

  /// By "flash", the first of that name, or with the device before it, "cuda:flash". Throws
  /// InvalidArgument listing the names there are.
  const Implementation& find(std::string_view name) const;

  /// The first implementation on that device that supports the problem and is no guest. Throws
  /// Unsupported with what each one misses.
  const Implementation& best(const Problem& problem, Device device = {}) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Implementation>> implementations_;
};

}  // namespace strobe
