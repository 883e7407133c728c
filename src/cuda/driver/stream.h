#pragma once

#include "cuda/driver/owned.h"

namespace strobe::cuda::driver {

/// A point in a stream's work.
class Event {
 public:
  explicit Event(const Device& device);

  void record(abi::Stream stream) { api().cuEventRecord(event_.get(), stream); }

  /// Whether the work before it is done.
  bool reached() const;

  /// Waits until the work before it is done.
  void synchronize() const { api().cuEventSynchronize(event_.get()); }

  abi::Event get() const { return event_.get(); }

 private:
  static void release(const Api& driver, abi::Event event) {
    driver.cuEventDestroy.unchecked(event);
  }

  Owned<abi::Event, release> event_{};
};

/// From one event to a later one, both reached.
float milliseconds_between(const Event& start, const Event& end);

/// A queue of work that does not wait for the default stream.
class Stream {
 public:
  explicit Stream(const Device& device);

  /// Waits until all of its work is done.
  void synchronize() const { api().cuStreamSynchronize(stream_.get()); }

  abi::Stream get() const { return stream_.get(); }

 private:
  static void release(const Api& driver, abi::Stream stream) {
    driver.cuStreamDestroy.unchecked(stream);
  }

  Owned<abi::Stream, release> stream_{};
};

}  // namespace strobe::cuda::driver
