#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "strobe/trace.h"

namespace strobe {

/// The spans of one thread in one recording. That thread writes and never waits; whoever stops the
/// recording may read at any time. What was written is not touched again, so that a span which ends
/// while it is read does no harm.
class SpanBuffer {
 public:
  static constexpr std::size_t kBlock = 256, kBlocks = 64;

  SpanBuffer(std::int64_t thread, std::string name) : thread_(thread), name_(std::move(name)) {}

  /// By the thread alone. Throws std::bad_alloc if there is no memory for more.
  void add(RecordedSpan&& span) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == kBlock * kBlocks) return drop();
    std::unique_ptr<Block>& block = blocks_[count / kBlock];
    if (!block) block = std::make_unique<Block>();
    (*block)[count % kBlock] = std::move(span);
    count_.store(count + 1, std::memory_order_release);
  }

  void drop() { dropped_.fetch_add(1, std::memory_order_relaxed); }

  RecordedThread read() const {
    RecordedThread all{.id = thread_, .name = name_};
    const std::size_t count = count_.load(std::memory_order_acquire);
    all.spans.reserve(count);
    for (std::size_t i = 0; i < count; ++i) all.spans.push_back((*blocks_[i / kBlock])[i % kBlock]);
    all.dropped = dropped_.load(std::memory_order_relaxed);
    return all;
  }

 private:
  using Block = std::array<RecordedSpan, kBlock>;

  std::int64_t thread_;
  std::string name_;
  std::array<std::unique_ptr<Block>, kBlocks> blocks_{};
  std::atomic<std::size_t> count_{0};
  std::atomic<std::int64_t> dropped_{0};
};

}  // namespace strobe
