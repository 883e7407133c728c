// On its own: after every commit it is compiled anew.
#include "report/commit.h"

namespace strobe::lab {

const char* commit() {
  return STROBE_COMMIT;
}

}  // namespace strobe::lab
