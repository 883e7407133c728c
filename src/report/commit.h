#pragma once

namespace strobe::lab {

/// The commit that this was built from, "unknown" where nothing told.
const char* commit();

}  // namespace strobe::lab
