#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "report/device_text.h"

#include "strobe/machine.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

std::int64_t first_begin(std::span<const TraceTrack> tracks) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const TraceTrack& track : tracks) {
    for (const RecordedSpan& slice : track.slices) first = std::min(first, slice.begin_ns);
  }
  return first;
}

json microseconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

json arguments_of(const RecordedSpan& slice) {
  json all = json::object();
  for (const SpanArgument& argument : slice.arguments) {
    std::visit([&](const auto& value) { all[std::string(argument.name)] = value; }, argument.value);
  }
  return all;
}

json metadata(const char* what, const TraceTrack& track, json arguments) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", track.process},
          {"tid", track.thread},
          {"args", arguments}};
}

json slice_event(const TraceTrack& track, const RecordedSpan& slice, std::int64_t origin) {
  return {{"ph", "X"},
          {"name", slice.name},
          {"cat", slice.category},
          {"pid", track.process},
          {"tid", track.thread},
          {"ts", microseconds(slice.begin_ns - origin)},
          {"dur", microseconds(slice.end_ns - slice.begin_ns)},
          {"args", arguments_of(slice)}};
}

RecordedSpan slice_of(const DeviceWork& work) {
  RecordedSpan slice{.category = category_of(work),
                     .name = work.name,
                     .begin_ns = work.begin_ns,
                     .end_ns = std::max(work.begin_ns, work.end_ns),
                     .arguments = {{"stream", work.stream}}};
  const auto tell = [&](std::string_view name, auto value) {
    slice.arguments.push_back({name, std::move(value)});
  };
  if (work.kind != DeviceWork::Kind::kernel) {
    tell("bytes", work.bytes);
    return slice;
  }
  tell("grid", extent_text(work.launch.grid));
  tell("block", extent_text(work.launch.block));
  tell("registers of a thread", std::int64_t{work.launch.registers});
  tell("static shared bytes", work.launch.static_shared_bytes);
  tell("dynamic shared bytes", work.launch.dynamic_shared_bytes);
  tell("local bytes of a thread", work.launch.local_bytes);
  return slice;
}

/// The first track of the slice's stream that is free when it begins: kernels of one stream may
/// overlap, where the later is launched to begin early, and slices of a track may not.
TraceTrack& track_for(std::vector<TraceTrack>& tracks, std::vector<std::int64_t>& streams,
                      const DeviceWork& work) {
  int of_stream = 0;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    if (streams[i] != work.stream) continue;
    ++of_stream;
    if (tracks[i].slices.back().end_ns <= work.begin_ns) return tracks[i];
  }
  streams.push_back(work.stream);
  const std::string name = fmt::format("stream {}", work.stream);
  return tracks.emplace_back(
      TraceTrack{.process = 2,
                 .thread = static_cast<std::int64_t>(tracks.size()) + 1,
                 .thread_name = of_stream == 0 ? name : name + ", overlapping"});
}

}  // namespace

std::vector<TraceTrack> device_tracks(const DeviceActivity& activity) {
  std::vector<TraceTrack> tracks;
  std::vector<std::int64_t> streams;
  for (const DeviceWork& work : activity.work)
    track_for(tracks, streams, work).slices.push_back(slice_of(work));
  for (TraceTrack& track : tracks) track.process_name = activity.device;
  if (!tracks.empty()) tracks.front().dropped = activity.dropped;
  return tracks;
}

std::vector<TraceTrack> host_tracks(const Recording& recording) {
  std::vector<TraceTrack> tracks;
  for (const RecordedThread& thread : recording) {
    tracks.push_back({.thread = thread.id,
                      .thread_name = thread.name,
                      .slices = thread.spans,
                      .dropped = thread.dropped});
  }
  return tracks;
}

std::vector<TraceTrack> all_tracks(const RecordedCalls& calls) {
  std::vector<TraceTrack> tracks = host_tracks(calls.host);
  std::vector<TraceTrack> device = device_tracks(calls.device);
  std::move(device.begin(), device.end(), std::back_inserter(tracks));
  return tracks;
}

json chrome_trace(std::span<const TraceTrack> tracks) {
  json events = json::array();
  std::set<int> named;
  std::int64_t place = 0, dropped = 0;
  for (const TraceTrack& track : tracks) {
    if (named.insert(track.process).second)
      events.push_back(metadata("process_name", track, {{"name", track.process_name}}));
    events.push_back(metadata("thread_name", track, {{"name", track.thread_name}}));
    events.push_back(metadata("thread_sort_index", track, {{"sort_index", place++}}));
    dropped += track.dropped;
  }
  const std::int64_t origin = first_begin(tracks);
  for (const TraceTrack& track : tracks) {
    for (const RecordedSpan& slice : track.slices)
      events.push_back(slice_event(track, slice, origin));
  }
  return {{"traceEvents", std::move(events)},
          {"displayTimeUnit", "ms"},
          {"otherData", {{"program", "strobe"}, {"version", version()}, {"dropped", dropped}}}};
}

}  // namespace strobe::lab
