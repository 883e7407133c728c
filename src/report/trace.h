#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "measure/recorded_calls.h"
#include "strobe/device_profile.h"
#include "strobe/trace.h"

namespace strobe::lab {

/// A row of a trace: what one thread of the host did, or one stream of a device. Tracks of one
/// process number are shown together, under the name that the first of them gives it.
struct TraceTrack {
  int process = 1;
  std::string process_name = "CPU threads";
  std::int64_t thread = 0;
  std::string thread_name{};
  std::vector<RecordedSpan> slices{};  ///< beside or within each other
  std::int64_t dropped = 0;
};

/// One for each thread that was recorded.
std::vector<TraceTrack> host_tracks(const Recording& recording);

/// One for each stream of the device, and more where work on a stream overlaps. The names in them
/// are those of `activity`, which must live as long.
std::vector<TraceTrack> device_tracks(const DeviceActivity& activity);

/// Those of both.
std::vector<TraceTrack> all_tracks(const RecordedCalls& calls);

/// What chrome://tracing and Perfetto open: the JSON Object Format of Chrome's trace events. Times
/// are microseconds since the first slice.
nlohmann::json chrome_trace(std::span<const TraceTrack> tracks);

}  // namespace strobe::lab
