#include "cuda/cupti/metrics.h"

#include <limits>
#include <utility>

namespace strobe::cuda::cupti {
namespace {

/// What a metric is called on chips that do not know it by its usual name, those of GeForce since
/// Blackwell; "" if it has no other.
std::string other_name(const std::string& metric) {
  if (metric == "dram__bytes_read.sum") return "dram__bytes_op_read.sum";
  if (metric == "dram__bytes_write.sum") return "dram__bytes_op_write.sum";
  return "";
}

}  // namespace

Host::Host(const Profiler& cupti, const std::string& chip,
           const std::vector<std::uint8_t>& availability)
    : cupti_(cupti) {
  abi::HostInitialize start{.chip = chip.c_str(),
                            .availability = availability.empty() ? nullptr : availability.data()};
  cupti.cuptiProfilerHostInitialize(&start);
  object_ = start.host;
}

Host::~Host() {
  abi::HostDeinitialize end{.host = object_};
  cupti_.cuptiProfilerHostDeinitialize.unchecked(&end);
}

bool Host::add(std::vector<const char*>& names) const {
  abi::ConfigAddMetrics add{.host = object_, .names = names.data(), .count = names.size()};
  return cupti_.cuptiProfilerHostConfigAddMetrics.unchecked(&add) == abi::Result::success;
}

// Metrics can be added but once, and all are refused if one is: so each is tried by itself before.
Metrics::Metrics(const Profiler& cupti, const std::string& chip,
                 const std::vector<std::uint8_t>& availability, std::span<const std::string> wanted)
    : cupti_(cupti), host_(cupti, chip, availability) {
  const auto knows = [&](const std::string& name) {
    std::vector<const char*> alone{name.c_str()};
    return !name.empty() && Host(cupti, chip, availability).add(alone);
  };
  for (const std::string& metric : wanted) {
    std::string name = knows(metric) ? metric : other_name(metric);
    if (name != metric && !knows(name)) {
      unknown_.push_back(metric);
      continue;
    }
    known_.push_back(metric);
    chip_names_.push_back(std::move(name));
  }
  for (const std::string& name : chip_names_) names_.push_back(name.c_str());
  if (!names_.empty() && !host_.add(names_))
    throw Refused("CUPTI does not count together what it counts one by one; a later one may");
}

std::vector<std::uint8_t> Metrics::config() const {
  abi::ConfigImageSize size{.host = host_.object()};
  cupti_.cuptiProfilerHostGetConfigImageSize(&size);
  std::vector<std::uint8_t> image(size.bytes);
  abi::ConfigImage get{.host = host_.object(), .bytes = image.size(), .image = image.data()};
  cupti_.cuptiProfilerHostGetConfigImage(&get);
  return image;
}

std::vector<double> Metrics::evaluate(const std::vector<std::uint8_t>& counted, std::size_t range) {
  std::vector<double> values(known_.size(), std::numeric_limits<double>::quiet_NaN());
  abi::Evaluate get{.host = host_.object(),
                    .image = counted.data(),
                    .image_bytes = counted.size(),
                    .range = range,
                    .names = names(),
                    .count = known_.size(),
                    .values = values.data()};
  cupti_.cuptiProfilerHostEvaluateToGpuValues(&get);
  return values;
}

std::size_t pass_count(const Profiler& cupti, std::vector<std::uint8_t>& config) {
  abi::PassCount get{.bytes = config.size(), .image = config.data()};
  cupti.cuptiProfilerHostGetNumOfPasses(&get);
  return get.passes;
}

}  // namespace strobe::cuda::cupti
