#pragma once

#include <cstdint>

#include "strobe/export.h"

namespace strobe {

/// The host program's own threads, for the library to compute on instead of its own: those of TBB,
/// of OpenMP, of PyTorch.
struct Executor {
  using Call = void (*)(void* argument, std::int64_t task);

  /// Must call call(argument, task) once for every task in [0, tasks), in any order, on any
  /// threads, as many at a time as it likes (one is enough), and return when all of them have
  /// returned. `call` throws nothing; `run` must not either. May be called by several threads at
  /// once. Null: none.
  void (*run)(void* context, std::int64_t tasks, Call call, void* argument) = nullptr;
  void* context = nullptr;  ///< given to `run`
};

/// From now on the library computes on these threads, or, after set_executor({}), on its own again.
/// A computation never has more tasks than the threads it was planned with, and gives the same
/// bits. Calls that have begun keep the executor they began with, so its context must outlive them.
/// The host's threads are never pinned.
STROBE_API void set_executor(const Executor& executor);

/// While on, each thread that computes keeps to a core of its own, the calling one included: for
/// measurements, where a migration costs more than what is measured. Takes the place of STROBE_PIN,
/// which decides until then: 1 is on, 0 or nothing off.
STROBE_API void pin_threads(bool on);

/// Whether threads are pinned. Throws InvalidArgument if that is for STROBE_PIN to say, and it is
/// neither 0 nor 1.
STROBE_API bool threads_pinned();

}  // namespace strobe
