// Spans as a tool hears them that NVTX_INJECTION64_PATH names: see nvtx_tool.c.
#include <gtest/gtest.h>

#include "core/shared_object.h"
#include "strobe/trace.h"
#include "support/environment.h"

namespace strobe::test {
namespace {

// Before the first span.
const ScopedVariable kTool("NVTX_INJECTION64_PATH", STROBE_NVTX_TOOL);

/// What it has heard since it was last asked.
std::string heard() {
  static std::size_t before = 0;
  const char* (*function)() = nullptr;
  if (!SharedObject({STROBE_NVTX_TOOL}).find("nvtx_tool_heard", function)) return "nothing at all";
  const std::string all = function();
  return all.substr(std::exchange(before, all.size()));
}

TEST(Nvtx, SpansAreRangesOfAToolThatListens) {
  {
    const Span outer("test", "outer");
    const Span inner("test", "inner");
  }
  EXPECT_EQ(heard(), "domain strobe;+outer;+inner;-;-;");
  start_recording();
  { const Span span("test", std::string_view("both and not this").substr(0, 4)); }
  const Recording recording = stop_recording();
  ASSERT_EQ(recording.size(), 1u);
  EXPECT_EQ(recording[0].spans.size(), 1u);
  EXPECT_EQ(heard(), "+both;-;");
  { const Span span("test", "after"); }
  EXPECT_EQ(heard(), "+after;-;") << "a recording that ends leaves the tool on";
  EXPECT_TRUE(stop_recording().empty());
}

}  // namespace
}  // namespace strobe::test
