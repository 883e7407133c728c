#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "strobe/export.h"

// Where the time of a call goes: stretches of it that the library marks, and a program may too.
namespace strobe {

/// Something that a span tells beside its name: the problem, a number of items.
struct SpanArgument {
  std::string_view name{};  ///< lives as long as the program: a literal
  std::variant<std::int64_t, double, std::string> value{};
};

/// A stretch of one thread's time.
struct RecordedSpan {
  std::string_view category{}, name{};    ///< "cpu", "flash forward"; literals
  std::int64_t begin_ns = 0, end_ns = 0;  ///< of the steady clock
  std::vector<SpanArgument> arguments{};
};

/// What one thread did, in the order in which it began. Its spans lie beside or within each other.
struct RecordedThread {
  std::int64_t id = 0;  ///< the system's
  std::string name{};   ///< "main", "worker 1"
  std::vector<RecordedSpan> spans{};
  std::int64_t dropped = 0;  ///< spans for which there was no room
};

using Recording = std::vector<RecordedThread>;

/// From now on spans are recorded, of all threads. Throws Error if they are already: there is one
/// recording at a time.
STROBE_API void start_recording();

/// Ends it, and returns what has ended by now. A thread keeps the first 16384 of its spans, and
/// counts the others. Nothing if nothing was being recorded.
STROBE_API Recording stop_recording();

/// Marks the time until it goes out of scope, in the thread that made it. A profiler that
/// understands NVTX sees it as a range, whether it is recorded or not. While nobody listens it
/// costs a look at a flag.
///
///     const strobe::Span span("mine", "load the weights");
class STROBE_API Span {
 public:
  /// Both must live as long as the program: literals.
  Span(std::string_view category, std::string_view name) noexcept;
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  /// Whether anybody listens: what a span tells is not worth finding out otherwise.
  explicit operator bool() const { return span_.has_value(); }

  /// Tells something more, while it is being recorded and there is memory for it.
  template <class Value>
  void tell(std::string_view name, Value value) noexcept {
    if (span_) add({name, std::move(value)});
  }

 private:
  void begin(std::string_view category, std::string_view name) noexcept;
  void end() noexcept;
  void add(SpanArgument argument) noexcept;

  std::uint64_t listeners_ = 0;
  std::optional<RecordedSpan> span_{};
};

}  // namespace strobe
