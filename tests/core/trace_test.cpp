#include "strobe/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "core/span_buffer.h"
#include "core/threads.h"
#include "strobe/attention.h"
#include "strobe/error.h"

namespace strobe::test {
namespace {

/// The spans of all threads.
std::vector<RecordedSpan> all_spans(const Recording& recording) {
  std::vector<RecordedSpan> all;
  for (const RecordedThread& thread : recording)
    all.insert(all.end(), thread.spans.begin(), thread.spans.end());
  return all;
}

std::vector<RecordedSpan> named(const Recording& recording, std::string_view name) {
  std::vector<RecordedSpan> found = all_spans(recording);
  std::erase_if(found, [&](const RecordedSpan& span) { return span.name != name; });
  return found;
}

template <class Value>
Value told(const RecordedSpan& span, std::string_view name) {
  for (const SpanArgument& argument : span.arguments) {
    if (argument.name == name) return std::get<Value>(argument.value);
  }
  ADD_FAILURE() << span.name << " does not tell " << name;
  return {};
}

TEST(Trace, NothingIsRecordedUnlessAskedFor) {
  {
    Span span("test", "unseen");
    EXPECT_FALSE(span);
    span.tell("number", std::int64_t{1});
  }
  EXPECT_TRUE(stop_recording().empty());
}

TEST(Trace, SpansTellTheirNameTimeAndArguments) {
  start_recording();
  {
    Span span("test", "outer");
    EXPECT_TRUE(span);
    span.tell("count", std::int64_t{3});
    span.tell("ratio", 0.5);
    span.tell("text", std::string("words"));
    const Span inner("test", "inner");
  }
  const Recording recording = stop_recording();
  ASSERT_EQ(recording.size(), 1u);
  ASSERT_EQ(recording[0].spans.size(), 2u);
  EXPECT_FALSE(recording[0].name.empty());
  EXPECT_EQ(recording[0].dropped, 0);
  const RecordedSpan &outer = recording[0].spans[0], &inner = recording[0].spans[1];
  EXPECT_EQ(outer.name, "outer") << "in the order in which they began";
  EXPECT_EQ(outer.category, "test");
  EXPECT_EQ(told<std::int64_t>(outer, "count"), 3);
  EXPECT_EQ(told<double>(outer, "ratio"), 0.5);
  EXPECT_EQ(told<std::string>(outer, "text"), "words");
  EXPECT_LE(outer.begin_ns, inner.begin_ns);
  EXPECT_LE(inner.begin_ns, inner.end_ns);
  EXPECT_LE(inner.end_ns, outer.end_ns);
}

TEST(Trace, OneRecordingAtATime) {
  start_recording();
  EXPECT_THROW(start_recording(), Error);
  stop_recording();
  start_recording();
  stop_recording();
}

TEST(Trace, ASpanThatEndsAfterItsRecordingIsNotInTheNext) {
  start_recording();
  {
    const Span late("test", "late");
    EXPECT_TRUE(all_spans(stop_recording()).empty());
    start_recording();
  }
  EXPECT_TRUE(all_spans(stop_recording()).empty());
}

TEST(Trace, AFullBufferCountsWhatItDrops) {
  constexpr std::size_t kRoom = SpanBuffer::kBlock * SpanBuffer::kBlocks;
  start_recording();
  for (std::size_t i = 0; i < kRoom + 5; ++i) const Span span("test", "many");
  const Recording recording = stop_recording();
  ASSERT_EQ(recording.size(), 1u);
  EXPECT_EQ(recording[0].spans.size(), kRoom);
  EXPECT_EQ(recording[0].dropped, 5);
}

TEST(TraceThreads, EachShareOfAParallelRegionIsASpan) {
  constexpr std::int64_t kItems = 1000;
  std::atomic<std::int64_t> done{0};
  start_recording();
  parallel_for("region", kItems, 4, [&](std::int64_t, int) { ++done; });
  const Recording recording = stop_recording();
  EXPECT_EQ(done, kItems);
  const std::vector<RecordedSpan> shares = named(recording, "region");
  ASSERT_GE(shares.size(), 1u) << "who comes late is not waited for";
  ASSERT_LE(shares.size(), 4u);
  std::int64_t items = 0;
  for (const RecordedSpan& share : shares) {
    items += told<std::int64_t>(share, "items");
    EXPECT_LT(told<std::int64_t>(share, "thread"), 4);
  }
  EXPECT_EQ(items, kItems);
}

TEST(TraceThreads, RecordingMayStopWhileOthersWork) {
  std::atomic<bool> enough{false};
  const auto work = [&enough] {
    while (!enough) {
      Span outer("test", "outer");
      outer.tell("number", std::int64_t{1});
      const Span inner("test", "inner");
    }
  };
  std::thread first(work), second(work);
  for (int i = 0; i < 200; ++i) {
    start_recording();
    std::this_thread::yield();
    for (const RecordedThread& thread : stop_recording()) {
      for (const RecordedSpan& span : thread.spans) {
        ASSERT_LE(span.begin_ns, span.end_ns);
        ASSERT_TRUE(span.name == "outer" || span.name == "inner");
      }
    }
  }
  enough = true;
  first.join();
  second.join();
}

TEST(TraceThreads, ThreadsAreToldApart) {
  start_recording();
  std::thread([] { const Span span("test", "elsewhere"); }).join();
  { const Span span("test", "here"); }
  const Recording recording = stop_recording();
  ASSERT_EQ(recording.size(), 2u);
  EXPECT_NE(recording[0].id, recording[1].id);
  EXPECT_NE(recording[0].name, recording[1].name);
}

TEST(Trace, TheLibraryMarksItsPhases) {
  const Problem problem = Problem::parse("b1 s64 h2 d16 fp32");
  std::vector<float> data(64 * 2 * 16, 0.5F), out(data.size());
  const TensorView in = TensorView::contiguous(data.data(), DType::fp32, {1, 64, 2, 16});
  start_recording();
  Attention attention(problem, {.implementation = "flash", .threads = 2});
  attention({.q = in,
             .k = in,
             .v = in,
             .out = TensorView::contiguous(out.data(), DType::fp32, {1, 64, 2, 16})});
  const Recording recording = stop_recording();
  for (const char* name : {"plan", "run"}) {
    const auto spans = named(recording, name);
    ASSERT_EQ(spans.size(), 1u) << name;
    EXPECT_EQ(told<std::string>(spans[0], "implementation"), "flash");
    EXPECT_EQ(told<std::string>(spans[0], "problem"), problem.text());
  }
  const auto run = named(recording, "run"), execute = named(recording, "execute");
  ASSERT_EQ(execute.size(), 1u);
  EXPECT_LE(run[0].begin_ns, execute[0].begin_ns);
  for (const RecordedSpan& share : named(recording, "flash forward")) {
    EXPECT_GE(share.begin_ns, execute[0].begin_ns);
    EXPECT_LE(share.end_ns, execute[0].end_ns);
  }
  EXPECT_FALSE(named(recording, "flash forward").empty());
}

TEST(Trace, ARegionThatThrowsStillEndsItsSpans) {
  start_recording();
  EXPECT_THROW(
      parallel_for("region", 8, 2, [](std::int64_t, int) { throw std::runtime_error("no"); }),
      std::runtime_error);
  EXPECT_FALSE(named(stop_recording(), "region").empty());
}

}  // namespace
}  // namespace strobe::test
