#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "strobe/trace.h"

namespace strobe {

/// Where spans go. There is one, in libstrobe; the CUDA backend, which has the engine's code once
/// more within itself, is handed it.
class Recorder {
 public:
  constexpr Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  /// Who wants to hear of spans: 0 if nobody does.
  std::uint64_t listeners() const { return listeners_.load(std::memory_order_relaxed); }

  /// The same, once it is known whether a tool is there: the first span finds out.
  virtual std::uint64_t ask_for_listeners() noexcept = 0;

  /// In the thread of the span, before and after it, with whoever listened when it began. What has
  /// been stopped meanwhile, and what there is no memory for, is not kept.
  virtual void begin(std::uint64_t listeners, RecordedSpan& span) noexcept = 0;
  virtual void end(std::uint64_t listeners, RecordedSpan&& span) noexcept = 0;

 protected:
  /// A tool that takes ranges; beneath it is the number of the recording that is on, 0 if none is.
  static constexpr std::uint64_t kTool = std::uint64_t{1} << 63;

  std::atomic<std::uint64_t> listeners_{kTool};  // there may be one, until somebody has looked
};

/// The one that spans of this library go to.
Recorder& recorder();

/// Lets them go to another library's. Before there are any.
void use_recorder(Recorder& other);

/// What recordings call this thread; "main" or its number if it is not said.
void name_this_thread(std::string name);

}  // namespace strobe
