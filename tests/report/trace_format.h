#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

namespace strobe::test {

/// Slices of a track, as begin and end.
using TrackTimes = std::vector<std::pair<double, double>>;

/// In the order of the file each slice must lie within the one before it that is still open, or
/// behind it.
inline void expect_nesting(const TrackTimes& slices) {
  constexpr double kRounding = 1e-6;  // of microseconds that were nanoseconds
  std::vector<double> open;
  double last = 0;
  for (const auto& [begin, end] : slices) {
    EXPECT_GE(begin + kRounding, last) << "out of order";
    last = begin;
    while (!open.empty() && open.back() <= begin + kRounding) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(end, open.back() + kRounding) << "a slice ends after the one around it";
    }
    open.push_back(end);
  }
}

inline void expect_slice(const nlohmann::json& event) {
  EXPECT_TRUE(event.at("cat").is_string());
  EXPECT_TRUE(event.at("ts").is_number());
  EXPECT_GE(event.at("ts").get<double>(), 0);
  EXPECT_TRUE(event.at("dur").is_number());
  EXPECT_GE(event.at("dur").get<double>(), 0);
  EXPECT_TRUE(event.at("args").is_object());
  EXPECT_FALSE(event.at("args").empty()) << event.dump();
}

/// What the trace event format asks of a file of complete events, and we of ours: each track named,
/// each slice with arguments, slices of a track beside or within each other.
inline void expect_chrome_trace(const nlohmann::json& trace) {
  using Track = std::pair<std::int64_t, std::int64_t>;
  ASSERT_TRUE(trace.is_object());
  ASSERT_TRUE(trace.at("traceEvents").is_array());
  std::set<std::int64_t> processes;
  std::set<Track> threads;
  std::map<Track, TrackTimes> slices;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    ASSERT_TRUE(event.at("name").is_string()) << event.dump();
    ASSERT_TRUE(event.at("pid").is_number_integer()) << event.dump();
    ASSERT_TRUE(event.at("tid").is_number_integer()) << event.dump();
    const Track track{event.at("pid"), event.at("tid")};
    if (event.at("ph") == "M") {
      ASSERT_TRUE(event.at("args").is_object());
      if (event.at("name") == "process_name") processes.insert(track.first);
      if (event.at("name") == "thread_name") threads.insert(track);
      continue;
    }
    ASSERT_EQ(event.at("ph"), "X") << event.dump();
    expect_slice(event);
    const double begin = event.at("ts");
    slices[track].emplace_back(begin, begin + event.at("dur").get<double>());
  }
  for (const auto& [track, times] : slices) {
    EXPECT_TRUE(processes.contains(track.first)) << "process " << track.first << " has no name";
    EXPECT_TRUE(threads.contains(track)) << "thread " << track.second << " has no name";
    expect_nesting(times);
  }
}

}  // namespace strobe::test
