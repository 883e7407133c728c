#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "strobe/trace.h"

namespace strobe {

/// Where spans go. There is one, in libstrobe; the CUDA backend, which has the engine's code once
/// more within itself, is handed it. Tools that want to hear of spans as they begin and end are to
/// be told here.
class Recorder {
 public:
  constexpr Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  /// The number of the recording that is on, 0 if none is.
  std::uint64_t recording() const { return recording_.load(std::memory_order_relaxed); }

  /// In the thread of the span, before and after it. What has been stopped meanwhile, and what
  /// there is no memory for, is not kept.
  virtual void begin(std::uint64_t recording, RecordedSpan& span) noexcept = 0;
  virtual void end(std::uint64_t recording, RecordedSpan&& span) noexcept = 0;

 protected:
  std::atomic<std::uint64_t> recording_{0};
};

/// The one that spans of this library go to.
Recorder& recorder();

/// Lets them go to another library's. Before there are any.
void use_recorder(Recorder& other);

/// What recordings call this thread; "main" or its number if it is not said.
void name_this_thread(std::string name);

}  // namespace strobe
