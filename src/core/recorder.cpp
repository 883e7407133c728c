#include "core/recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>

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

/// Keeps a buffer for each thread that has spans, until the recording is stopped.
class SpanMemory final : public Recorder {
 public:
  constexpr SpanMemory() = default;

  void start() {
    const std::scoped_lock lock(mutex_);
    if (recording_ != 0)
      throw Error("spans are being recorded already; stop_recording() ends that first");
    recording_ = ++recordings_;
  }

  Recording stop() {
    const std::scoped_lock lock(mutex_);
    recording_ = 0;
    Recording all;
    for (const auto& buffer : buffers_) all.push_back(buffer->read());
    buffers_.clear();
    return all;
  }

  void begin(std::uint64_t recording, RecordedSpan& span) noexcept override {
    seat(recording);  // not within the span, whose time it is not
    span.begin_ns = now_ns();
  }

  void end(std::uint64_t recording, RecordedSpan&& span) noexcept override {
    span.end_ns = now_ns();
    SpanBuffer* const buffer = seat(recording);
    if (buffer == nullptr) return;
    try {
      buffer->add(std::move(span));
    } catch (const std::exception&) {
      buffer->drop();
    }
  }

 private:
  /// The calling thread's buffer in this recording; null if that is over. Only the first span of a
  /// thread takes the lock.
  SpanBuffer* seat(std::uint64_t recording) noexcept {
    struct Seat {
      std::uint64_t recording = 0;
      std::shared_ptr<SpanBuffer> buffer{};
    };
    thread_local Seat mine;
    if (mine.recording == recording) return mine.buffer.get();
    try {
      const std::scoped_lock lock(mutex_);
      if (recording_ != recording) return nullptr;
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
    : recording_(recorder().recording()) {
  if (recording_ != 0) begin(category, name);
}

Span::~Span() {
  if (span_) end();
}

// Apart from the two above, so that a span which is not recorded saves no registers for it.
[[gnu::noinline]] void Span::begin(std::string_view category, std::string_view name) noexcept {
  span_.emplace().category = category;
  span_->name = name;
  recorder().begin(recording_, *span_);
}

[[gnu::noinline]] void Span::end() noexcept {
  recorder().end(recording_, std::move(*span_));
  span_.reset();
}

void Span::add(SpanArgument argument) noexcept {
  try {
    span_->arguments.push_back(std::move(argument));
  } catch (const std::exception&) {  // it tells less, then
  }
}

}  // namespace strobe
