#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cuda/cupti/library.h"

namespace strobe::cuda::cupti {

/// What CUPTI knows of a kind of chip, "GH100" for one.
class Host {
 public:
  /// `availability` is what the driver lets this process count; empty if nobody has asked it.
  /// Throws Refused.
  Host(const Profiler& cupti, const std::string& chip,
       const std::vector<std::uint8_t>& availability);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  abi::HostObject object() const { return object_; }

  /// Whether it has all of these metrics. Once.
  bool add(std::vector<const char*>& names) const;

 private:
  const Profiler& cupti_;
  abi::HostObject object_ = nullptr;
};

/// Metrics on a kind of chip: which of them it has, how they are counted, and what comes of the
/// counts. Needs no GPU.
class Metrics {
 public:
  /// Throws Refused.
  Metrics(const Profiler& cupti, const std::string& chip,
          const std::vector<std::uint8_t>& availability, std::span<const std::string> wanted);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  const std::vector<std::string>& known() const { return known_; }
  const std::vector<std::string>& unknown() const { return unknown_; }

  /// Of those that are known, as the chip calls them, for functions that ask for them so.
  const char** names() { return names_.data(); }

  /// How the device is to be set up for them.
  std::vector<std::uint8_t> config() const;

  /// Of one range of what the device has counted.
  std::vector<double> evaluate(const std::vector<std::uint8_t>& counted, std::size_t range);

 private:
  const Profiler& cupti_;
  Host host_;
  std::vector<std::string> known_{}, unknown_{};
  std::vector<std::string> chip_names_{};
  std::vector<const char*> names_{};
};

/// How often the same work must run until everything of this configuration is counted.
std::size_t pass_count(const Profiler& cupti, std::vector<std::uint8_t>& config);

}  // namespace strobe::cuda::cupti
