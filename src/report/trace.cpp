#include "report/trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

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

}  // namespace

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
