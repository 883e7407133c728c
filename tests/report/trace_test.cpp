#include "report/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "report/trace_format.h"

namespace strobe::test {
namespace {

using lab::TraceTrack;
using nlohmann::json;

RecordedSpan span(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) {
  return {.category = "test",
          .name = name,
          .begin_ns = begin_ns,
          .end_ns = end_ns,
          .arguments = {{"items", std::int64_t{7}}, {"text", std::string("a \"b\"")}}};
}

std::vector<TraceTrack> two_processes() {
  return {{.thread = 11,
           .thread_name = "main",
           .slices = {span("outer", 5'000, 9'000), span("inner", 6'500, 7'000)}},
          {.thread = 12, .thread_name = "worker 1", .slices = {span("inner", 6'000, 8'000)}},
          {.process = 2,
           .process_name = "cuda:0",
           .thread = 1,
           .thread_name = "stream 1",
           .slices = {span("kernel", 7'000, 7'100)},
           .dropped = 3}};
}

TEST(ChromeTrace, KeepsToTheFormat) {
  const json trace = lab::chrome_trace(two_processes());
  expect_chrome_trace(trace);
  EXPECT_EQ(trace["otherData"]["dropped"], 3);
}

TEST(ChromeTrace, TimesAreMicrosecondsSinceTheFirstSlice) {
  const json trace = lab::chrome_trace(two_processes());
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["name"] != "kernel") continue;
    EXPECT_DOUBLE_EQ(event["ts"].get<double>(), 2.0);
    EXPECT_DOUBLE_EQ(event["dur"].get<double>(), 0.1);
    EXPECT_EQ(event["args"]["items"], 7);
    EXPECT_EQ(event["args"]["text"], "a \"b\"");
  }
}

TEST(ChromeTrace, NamesEveryProcessAndThread) {
  std::map<std::string, int> names;
  const json trace = lab::chrome_trace(two_processes());
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["args"].contains("name")) ++names[event["args"]["name"]];
  }
  for (const char* name : {"CPU threads", "cuda:0", "main", "worker 1", "stream 1"})
    EXPECT_EQ(names[name], 1) << name;
}

TEST(ChromeTrace, OfNothingIsEmptyAndValid) {
  const json trace = lab::chrome_trace({});
  expect_chrome_trace(trace);
  EXPECT_TRUE(trace["traceEvents"].empty());
}

TEST(ChromeTrace, HostTracksAreTheThreadsOfARecording) {
  start_recording();
  {
    Span outer("test", "outer");
    outer.tell("number", std::int64_t{1});
    Span inner("test", "inner");
    inner.tell("number", std::int64_t{2});
  }
  const auto tracks = lab::host_tracks(stop_recording());
  ASSERT_EQ(tracks.size(), 1u);
  EXPECT_EQ(tracks[0].process, 1);
  EXPECT_EQ(tracks[0].slices.size(), 2u);
  expect_chrome_trace(lab::chrome_trace(tracks));
}

}  // namespace
}  // namespace strobe::test
