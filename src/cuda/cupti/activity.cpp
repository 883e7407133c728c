#include "cuda/cupti/activity.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

#include "cuda/cupti/library.h"

namespace strobe::cuda::cupti {
namespace {

constexpr std::array kKinds{abi::ActivityKind::kernel, abi::ActivityKind::copy,
                            abi::ActivityKind::fill};

std::string kernel_name(const char* symbol) {
  if (symbol == nullptr) return "kernel";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      ::abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return plain ? plain.get() : symbol;
}

const char* copy_name(abi::CopyKind kind) {
  switch (kind) {
    case abi::CopyKind::host_to_device:
      return "copy to the device";
    case abi::CopyKind::device_to_host:
      return "copy to the host";
    case abi::CopyKind::device_to_device:
      return "copy on the device";
    case abi::CopyKind::peer_to_peer:
      return "copy to another device";
  }
  return "copy";
}

DeviceWork work_of(const abi::KernelRecord& record) {
  DeviceWork work{.kind = DeviceWork::Kind::kernel,
                  .name = kernel_name(record.name),
                  .stream = record.stream,
                  .begin_ns = static_cast<std::int64_t>(record.start),
                  .end_ns = static_cast<std::int64_t>(record.end),
                  .launch = {.registers = record.registers,
                             .static_shared_bytes = record.static_shared_bytes,
                             .dynamic_shared_bytes = record.dynamic_shared_bytes,
                             .local_bytes = record.local_bytes}};
  std::copy_n(record.grid, 3, work.launch.grid.begin());
  std::copy_n(record.block, 3, work.launch.block.begin());
  return work;
}

DeviceWork work_of(const abi::MemoryRecord& record) {
  const bool fills = record.kind == abi::ActivityKind::fill;
  return {.kind = fills ? DeviceWork::Kind::fill : DeviceWork::Kind::copy,
          .name = fills ? "fill" : copy_name(record.copy_kind),
          .stream = record.stream,
          .begin_ns = static_cast<std::int64_t>(record.start),
          .end_ns = static_cast<std::int64_t>(record.end),
          .bytes = static_cast<std::int64_t>(record.bytes)};
}

/// Where CUPTI leaves its records, from a thread of its own. Its functions are told nothing of who
/// asked, so there is one. Records come from every GPU that this process uses, and those of one are
/// kept.
class Log {
 public:
  void begin(int device) {
    const std::scoped_lock lock(mutex_);
    device_ = static_cast<std::uint32_t>(device);
    work_.clear();
    dropped_ = 0;
  }

  void read(std::uint8_t* buffer, std::size_t valid_bytes) {
    const std::scoped_lock lock(mutex_);
    void* record = nullptr;
    while (library().cuptiActivityGetNextRecord.unchecked(buffer, valid_bytes, &record) ==
           abi::Result::success) {
      try {
        add(record);
      } catch (const std::exception&) {  // no memory for it
        ++dropped_;
      }
    }
  }

  void drop(std::size_t records) {
    const std::scoped_lock lock(mutex_);
    dropped_ += static_cast<std::int64_t>(records);
  }

  DeviceActivity take() {
    const std::scoped_lock lock(mutex_);
    return {.work = std::move(work_), .dropped = dropped_};
  }

 private:
  void add(const void* record) {
    switch (*static_cast<const abi::ActivityKind*>(record)) {
      case abi::ActivityKind::kernel:
      case abi::ActivityKind::serial_kernel:
        add_ours(*static_cast<const abi::KernelRecord*>(record));
        break;
      case abi::ActivityKind::copy:
      case abi::ActivityKind::fill:
        add_ours(*static_cast<const abi::MemoryRecord*>(record));
        break;
    }
  }

  template <class Record>
  void add_ours(const Record& record) {
    if (record.device == device_) work_.push_back(work_of(record));
  }

  std::mutex mutex_{};
  std::uint32_t device_ = 0;
  std::vector<DeviceWork> work_{};
  std::int64_t dropped_ = 0;
};

Log& record_log() {
  static Log& once = *new Log;  // CUPTI may still write when the process ends
  return once;
}

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

void lend_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::malloc(kBufferBytes));  // aligned for any record
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as fit
}

void take_buffer(abi::Context context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                 std::size_t valid_bytes) {
  record_log().read(buffer, valid_bytes);
  std::size_t dropped = 0;
  library().cuptiActivityGetNumDroppedRecords.unchecked(context, stream, &dropped);
  record_log().drop(dropped);
  std::free(buffer);
}

std::int64_t steady_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// What to add to CUPTI's times to have those of the steady clock: CUPTI's is read between two
/// readings of ours, and of several tries the one is taken whose two lie closest together.
std::int64_t clock_offset_ns(const Library& cupti) {
  constexpr int kTries = 16;
  std::int64_t offset = 0, least = 0;
  for (int i = 0; i < kTries; ++i) {
    std::uint64_t theirs = 0;
    const std::int64_t before = steady_ns();
    cupti.cuptiGetTimestamp(&theirs);
    const std::int64_t width = steady_ns() - before;
    if (i > 0 && width >= least) continue;
    least = width;
    offset = before + width / 2 - static_cast<std::int64_t>(theirs);
  }
  return offset;
}

/// While it lives, records are made.
class Observation {
 public:
  Observation(const Library& cupti, int device) : cupti_(cupti) {
    static std::once_flag registered;
    std::call_once(registered,
                   [&] { cupti.cuptiActivityRegisterCallbacks(lend_buffer, take_buffer); });
    record_log().begin(device);
    offset_ns_ = clock_offset_ns(cupti);
    try {
      for (const abi::ActivityKind kind : kKinds) cupti.cuptiActivityEnable(kind);
    } catch (const Refused&) {
      disable();
      throw;
    }
  }
  ~Observation() { disable(); }
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  DeviceActivity finish() {
    cupti_.cuptiActivityFlushAll(abi::kFlushForced);
    DeviceActivity activity = record_log().take();
    for (DeviceWork& work : activity.work) {
      work.begin_ns += offset_ns_;
      work.end_ns += offset_ns_;
    }
    std::stable_sort(
        activity.work.begin(), activity.work.end(),
        [](const DeviceWork& a, const DeviceWork& b) { return a.begin_ns < b.begin_ns; });
    return activity;
  }

 private:
  void disable() {
    for (const abi::ActivityKind kind : kKinds) cupti_.cuptiActivityDisable.unchecked(kind);
  }

  const Library& cupti_;
  std::int64_t offset_ns_ = 0;
};

}  // namespace

DeviceActivity observe(int device, const std::function<void()>& work) {
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  std::optional<Observation> observation;
  DeviceActivity activity;
  try {
    observation.emplace(library(), device);
  } catch (const Refused& refusal) {
    activity.refused = refusal.what();
  }
  work();
  if (!observation) return activity;
  try {
    return observation->finish();
  } catch (const Refused& refusal) {
    activity.refused = refusal.what();
  }
  return activity;
}

}  // namespace strobe::cuda::cupti
