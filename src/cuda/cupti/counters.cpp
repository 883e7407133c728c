#include "cuda/cupti/counters.h"

#include "core/text.h"
#include "cuda/cupti/activity.h"
#include "cuda/cupti/library.h"
#include "cuda/cupti/metrics.h"

namespace strobe::cuda::cupti {
namespace {

/// CUPTI's profiler, in this process, while it lives.
class Session {
 public:
  explicit Session(const Profiler& cupti) : cupti_(cupti) {
    abi::PlainParameters none;
    cupti.cuptiProfilerInitialize(&none);
  }
  ~Session() {
    abi::PlainParameters none;
    cupti_.cuptiProfilerDeInitialize.unchecked(&none);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  const Profiler& cupti_;
};

void require_support(const Profiler& cupti, const driver::Device& device) {
  abi::DeviceSupported asked{.device = device.index()};
  cupti.cuptiProfilerDeviceSupported(&asked);
  if (asked.supported == abi::Support::supported) return;
  const auto lacks = [](abi::Support support) {
    return support == abi::Support::unsupported || support == abi::Support::disabled;
  };
  const char* why = "CUPTI does not count on this GPU";
  if (lacks(asked.architecture)) why = "CUPTI does not count on GPUs of this architecture";
  if (lacks(asked.virtual_gpu))
    why = "this is a virtual GPU, which the host must allow to be profiled";
  if (lacks(asked.confidential_computing))
    why = "the GPU is in confidential computing mode, in which it does not count";
  if (lacks(asked.wsl))
    why = "counters are switched off in Windows: allow them in its NVIDIA panel";
  if (lacks(asked.mining)) why = "GPUs for mining do not count";
  throw Refused(concat(why, "; take another GPU, or go on without counters"));
}

std::string chip_name(const Profiler& cupti, const driver::Device& device) {
  abi::ChipName get{.device = static_cast<std::size_t>(device.index())};
  cupti.cuptiDeviceGetChipName(&get);
  return get.name == nullptr ? "" : get.name;
}

std::vector<std::uint8_t> availability(const Profiler& cupti, abi::Context context) {
  abi::CounterAvailability get{.context = context};
  cupti.cuptiProfilerGetCounterAvailability(&get);
  std::vector<std::uint8_t> image(get.image_bytes);
  get.image = image.data();
  cupti.cuptiProfilerGetCounterAvailability(&get);
  return image;
}

/// The counters of one GPU, set up for some metrics.
class Counting {
 public:
  Counting(const Profiler& cupti, abi::Context context, Metrics& metrics, std::size_t most_kernels)
      : cupti_(cupti), metrics_(metrics), config_(metrics.config()) {
    abi::RangeEnable enable{.context = context};
    cupti.cuptiRangeProfilerEnable(&enable);
    ranges_ = enable.ranges;
    try {
      set_up(most_kernels);
    } catch (const Refused&) {
      disable();
      throw;
    }
  }
  ~Counting() { disable(); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  /// Returns how many passes it took.
  int run(const std::function<void()>& call) {
    const std::size_t most = 2 * pass_count(cupti_, config_) + 1;
    for (std::size_t pass = 1; pass <= most; ++pass) {
      if (run_pass(call)) return static_cast<int>(pass);
    }
    throw Refused(
        "the GPU's counters were not complete when they should have been: a call must launch the "
        "same kernels each time");
  }

  /// Of every kernel.
  std::vector<std::vector<double>> read() {
    abi::DecodeData decode{.ranges = ranges_};
    cupti_.cuptiRangeProfilerDecodeData(&decode);
    abi::CounterDataInfo info{.image = counted_.data(), .image_bytes = counted_.size()};
    cupti_.cuptiRangeProfilerGetCounterDataInfo(&info);
    std::vector<std::vector<double>> values;
    for (std::size_t i = 0; i < info.ranges; ++i) values.push_back(metrics_.evaluate(counted_, i));
    return values;
  }

 private:
  void set_up(std::size_t most_kernels) {
    abi::CounterDataSize size{.ranges = ranges_,
                              .names = metrics_.names(),
                              .count = metrics_.known().size(),
                              .most_ranges = most_kernels,
                              .most_nodes = static_cast<std::uint32_t>(most_kernels)};
    cupti_.cuptiRangeProfilerGetCounterDataSize(&size);
    counted_.resize(size.bytes);
    abi::CounterDataInitialize start{
        .ranges = ranges_, .bytes = counted_.size(), .image = counted_.data()};
    cupti_.cuptiRangeProfilerCounterDataImageInitialize(&start);
    abi::SetConfig set{.ranges = ranges_,
                       .config_bytes = config_.size(),
                       .config = config_.data(),
                       .image_bytes = counted_.size(),
                       .image = counted_.data(),
                       .most_ranges = most_kernels};
    cupti_.cuptiRangeProfilerSetConfig(&set);
  }

  /// Whether it was the last.
  bool run_pass(const std::function<void()>& call) {
    abi::RangeParameters start{.ranges = ranges_};
    cupti_.cuptiRangeProfilerStart(&start);
    call();
    abi::RangeStop stop{.ranges = ranges_};
    cupti_.cuptiRangeProfilerStop(&stop);
    return stop.all_passes_submitted != 0;
  }

  void disable() {
    abi::RangeParameters end{.ranges = ranges_};
    cupti_.cuptiRangeProfilerDisable.unchecked(&end);
  }

  const Profiler& cupti_;
  Metrics& metrics_;
  std::vector<std::uint8_t> config_;
  std::vector<std::uint8_t> counted_{};
  abi::RangeObject ranges_ = nullptr;
};

/// The kernels of a call, as they were seen to run; none if nobody may look.
std::vector<CountedKernel> kernels_of(const driver::Device& device,
                                      const std::function<void()>& call) {
  std::vector<CountedKernel> kernels;
  for (DeviceWork& work : observe(device.index(), call).work) {
    if (work.kind == DeviceWork::Kind::kernel)
      kernels.push_back({.name = std::move(work.name), .launch = work.launch});
  }
  return kernels;
}

DeviceCounts count_or_refuse(const driver::Device& device, std::span<const std::string> wanted,
                             const std::function<void()>& prepare,
                             const std::function<void()>& call) {
  constexpr std::size_t kMostOfPreparation = 16;
  const Profiler& cupti = profiler();
  const driver::ContextScope scope(device);
  DeviceCounts counts{.kernels = kernels_of(device, call)};
  if (counts.kernels.empty())
    throw Refused(
        "CUPTI does not show the kernels of a call, so that their counts cannot be told from "
        "others'; end other profilers of this process");
  prepare();  // what it does only the first time would make that pass another one
  const Session session(cupti);
  require_support(cupti, device);
  const abi::Context context = device.primary_context();
  Metrics metrics(cupti, chip_name(cupti, device), availability(cupti, context), wanted);
  counts.metrics = metrics.known();
  counts.unknown = metrics.unknown();
  if (metrics.known().empty())
    throw Refused(
        "the GPU has none of the counters that were asked for; a later CUPTI may know it");
  Counting counting(cupti, context, metrics, kMostOfPreparation + counts.kernels.size());
  // What CUPTI does when a pass starts comes before the preparation, whose kernels are then counted
  // as well: those of the call are the last.
  counts.passes = counting.run([&] {
    prepare();
    call();
  });
  const std::vector<std::vector<double>> values = counting.read();
  if (values.size() < counts.kernels.size())
    throw Refused("the GPU counted fewer kernels than a call has; end other profilers of the GPU");
  const std::size_t before = values.size() - counts.kernels.size();
  for (std::size_t i = 0; i < counts.kernels.size(); ++i)
    counts.kernels[i].values = values[before + i];
  return counts;
}

}  // namespace

DeviceCounts count(const driver::Device& device, std::span<const std::string> metrics,
                   const std::function<void()>& prepare, const std::function<void()>& call) {
  try {
    return count_or_refuse(device, metrics, prepare, call);
  } catch (const Refused& refusal) {
    return {.refused = refusal.what()};
  }
}

}  // namespace strobe::cuda::cupti
