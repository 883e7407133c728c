// Apart from the rest of the registry, so that a backend in a library of its own can have that
// without having every backend.
#include "core/builtin.h"

namespace strobe {

Registry& Registry::instance() {
  static Registry& registry = []() -> Registry& {
    static Registry built_in;
    register_builtin_implementations(built_in);
    return built_in;
  }();
  return registry;
}

}  // namespace strobe
