#pragma once

namespace strobe {

/// The place of a thread that calls parallel_for, for as long as it lives: 0 for the first, and
/// -1, -2, ... for those beside it, so that they are the last to share a core with the pool.
int caller_slot();

/// Puts the calling thread on a core of its own by `slot`, or lets it go, as pin_threads and
/// STROBE_PIN say; asks the system only when that has changed. Threads of the pool have slots
/// from 1 on.
void follow_pinning(int slot);

/// Lets the calling thread go if it is pinned, whatever is wanted.
void let_go();

/// A new thread has the mask of the one that made it, which may be pinned.
void forget_inherited_pinning();

/// Throws InvalidArgument if STROBE_PIN is neither 0 nor 1.
void check_pinning();

/// What STROBE_PIN says: "1" is yes; "0", nothing or null is no. Throws InvalidArgument else.
bool parse_pin(const char* value);

}  // namespace strobe
