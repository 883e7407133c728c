#include "reference/implementations.h"
#include "strobe/registry.h"

namespace strobe::reference {

void register_implementations(Registry& registry);

void register_implementations(Registry& registry) {
  registry.add(make_standard());
  registry.add(make_oracle());
}

}  // namespace strobe::reference
