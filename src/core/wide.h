#pragma once

namespace strobe {

/// For products of sizes that may pass 64 bits before they are checked.
__extension__ using Wide = __int128;

}  // namespace strobe
