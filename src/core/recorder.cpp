#include "core/recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>

#include "core/nvtx.h"
#include "core/span_buffer.h"
#include "core/text.h"
#include "strobe/error.h"

namespace strobe {
namespace {

thread_local std::string given_name;

std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::shared_ptr<SpanBuffer> buffer_of_this_thread() {
  const std::int64_t id = syscall(SYS_gettid);
  std::string name = given_name;
  if (name.empty()) name = id == getpid() ? "main" : concat("thread ", id);
  return std::make_shared<SpanBuffer>(id, std::move(name));
}

/// Keeps a buffer for each thread that has spans, until the recording is stopped. A tool that
/// listens is told of them at once.
class SpanMemory final : public Recorder {
 public:
  constexpr SpanMemory() = default;

  void start() {
    const std::scoped_lock lock(mutex_);
    if (number_of(listeners_) != 0)
      throw Error("spans are being recorded already; stop_recording() ends that first");
    listeners_ |= ++recordings_;
  }

  Recording stop() {
    const std::scoped_lock lock(mutex_);
    listeners_ &= kTool;
    Recording all;
    for (const auto& buffer : buffers_) all.push_back(buffer->read());
    buffers_.clear();
    return all;
  }

  std::uint64_t ask_for_listeners() noexcept override {
    if (!nvtx::listening()) listeners_ &= ~kTool;
    return listeners();
  }

  void begin(std::uint64_t listeners, RecordedSpan& span) noexcept override {
    seat(number_of(listeners));  // not within the span, whose time it is not
    if ((listeners & kTool) != 0) nvtx::push(span.name);
    span.begin_ns = now_ns();
  }

  void end(std::uint64_t listeners, RecordedSpan&& span) noexcept override {
    span.end_ns = now_ns();
    if ((listeners & kTool) != 0) nvtx::pop();
    SpanBuffer* const buffer = seat(number_of(listeners));
    if (buffer == nullptr) return;
    try {
      buffer->add(std::move(span));
    } catch (const std::exception&) {
      buffer->drop();
    }
  }

 private:
  static std::uint64_t number_of(std::uint64_t listeners) { return listeners & ~kTool; }

  /// The calling thread's buffer in this recording; null if that is over, or none at all. Only the
  /// first span of a thread takes the lock.
  SpanBuffer* seat(std::uint64_t recording) noexcept {
    struct Seat {
      std::uint64_t recording = 0;
      std::shared_ptr<SpanBuffer> buffer{};
    };
    thread_local Seat mine;
    if (recording == 0) return nullptr;
    if (mine.recording == recording) return mine.buffer.get();
    try {
      const std::scoped_lock lock(mutex_);
      if (number_of(listeners_) != recording) return nullptr;
      buffers_.push_back(buffer_of_this_thread());
      mine = {recording, buffers_.back()};
      return mine.buffer.get();
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  std::mutex mutex_{};
  std::uint64_t recordings_ = 0;
  std::vector<std::shared_ptr<SpanBuffer>> buffers_{};
};

/// There before any code runs, so that a span need not ask whether it is; and never destroyed, for
/// threads may still end spans when the process does.
union Immortal {
  SpanMemory memory;
  constexpr Immortal() : memory() {}
  ~Immortal() {}  // NOLINT(modernize-use-equals-default): it would be deleted
};

constinit Immortal own;
constinit Recorder* in_use = &own.memory;

/// A span is kept when it ends, after those within it.
void put_in_order(std::vector<RecordedSpan>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const RecordedSpan& a, const RecordedSpan& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
}

}  // namespace

Recorder& recorder() {
  return *in_use;
}

void use_recorder(Recorder& other) {
  in_use = &other;
}

void name_this_thread(std::string name) {
  given_name = std::move(name);
}

void start_recording() {
  own.memory.start();
}

Recording stop_recording() {
  Recording all = own.memory.stop();
  for (RecordedThread& thread : all) put_in_order(thread.spans);
  return all;
}

Span::Span(std::string_view category, std::string_view name) noexcept
    : listeners_(recorder().listeners()) {
  if (listeners_ != 0) begin(category, name);
}

Span::~Span() {
  if (span_) end();
}

// Apart from the two above, so that a span which is not recorded saves no registers for it.
[[gnu::noinline]] void Span::begin(std::string_view category, std::string_view name) noexcept {
  listeners_ = recorder().ask_for_listeners();
  if (listeners_ == 0) return;
  span_.emplace().category = category;
  span_->name = name;
  recorder().begin(listeners_, *span_);
}

[[gnu::noinline]] void Span::end() noexcept {
  recorder().end(listeners_, std::move(*span_));
  span_.reset();
}

void Span::add(SpanArgument argument) noexcept {
  try {
    span_->arguments.push_back(std::move(argument));
  } catch (const std::exception&) {  // it tells less, then
  }
}

}  // namespace strobe
