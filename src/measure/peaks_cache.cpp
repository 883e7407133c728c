#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/user_folder.h"
#include "measure/peaks.h"
#include "strobe/cuda.h"
#include "strobe/machine.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

/// Other builds reach a small part of a machine's peaks, which must not become those of a release.
#ifdef NDEBUG
constexpr const char* kBuild = "";
#else
constexpr const char* kBuild = ", no release";
#endif

/// What the peaks depend on.
std::string key_of(int threads) {
  const Machine here = machine();
  return fmt::format("strobe {}{}, {}, {}, {} of {} cores", version(), kBuild, here.cpu, here.isa,
                     threads, here.cores);
}

std::string key_of(Device device) {
  const CudaStatus status = cuda_status();
  const auto place = static_cast<std::size_t>(device.index);
  const std::string name = place < status.devices.size() ? status.devices[place].name : "";
  return fmt::format("strobe {}, {} {}, driver {}", version(), to_string(device), name,
                     status.driver.version);
}

json to_json(const Peaks& peaks) {
  json copy = json::array();
  for (const auto& rate : peaks.copy)
    copy.push_back({rate.bytes_per_thread, rate.bytes_per_second});
  json flops = json::object();
  for (const auto& [dtype, rate] : peaks.flops_per_second)
    flops[std::string(name_of(dtype))] = rate;
  json instructions = json::array();
  for (const auto& rate : peaks.instructions)
    instructions.push_back({rate.name, name_of(rate.dtype), rate.per_second});
  return {{"threads", peaks.threads},
          {"flops_per_second", flops},
          {"tf32_flops_per_second", peaks.tf32_flops_per_second},
          {"instructions", instructions},
          {"copy", copy}};
}

Peaks from_json(const json& kept) {
  Peaks peaks{.threads = kept.at("threads"),
              .tf32_flops_per_second = kept.value("tf32_flops_per_second", 0.0)};
  for (const auto& [name, rate] : kept.at("flops_per_second").items()) {
    peaks.flops_per_second[parse_dtype(name).value()] = rate;
  }
  for (const json& rate : kept.at("instructions")) {
    const auto dtype = parse_dtype(rate.at(1).get<std::string>());
    peaks.instructions.push_back({rate.at(0), dtype.value(), rate.at(2)});
  }
  for (const json& rate : kept.at("copy")) peaks.copy.push_back({rate.at(0), rate.at(1)});
  return peaks;
}

/// An object of peaks by key; empty if there is no file or it cannot be understood.
json read_cache() {
  std::ifstream file(peaks_cache_path());
  json cache = json::parse(file, nullptr, false);
  return cache.is_object() ? cache : json::object();
}

std::optional<Peaks> cached(const std::string& key) {
  const json cache = read_cache();
  try {
    if (cache.contains(key)) return from_json(cache.at(key));
  } catch (const std::exception&) {  // of another form than this program writes: measure again
  }
  return std::nullopt;
}

/// Best effort: without a folder to write to, peaks are measured each time. Written beside and
/// renamed, so that a reader never sees half a file.
void keep(const std::string& key, const Peaks& peaks) {
  const std::filesystem::path path = peaks_cache_path();
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  json cache = read_cache();
  cache[key] = to_json(peaks);
  const std::string fresh = fmt::format("{}.{}", path.string(), getpid());
  if (!(std::ofstream(fresh) << cache.dump(1) << '\n')) return;
  std::filesystem::rename(fresh, path, ignored);
}

/// What was measured in vain is not kept.
Peaks known_or_measured(const std::string& key, bool anew, const std::function<Peaks()>& measure) {
  const std::optional<Peaks> known = cached(key);
  if (known && !anew) return *known;
  Peaks peaks = measure();
  if (known) peaks.raise_to(*known);
  if (!peaks.flops_per_second.empty()) keep(key, peaks);
  return peaks;
}

}  // namespace

std::string peaks_cache_path() {
  return cache_folder() / "peaks.json";
}

Peaks machine_peaks(int threads, bool anew) {
  return known_or_measured(key_of(threads > 0 ? threads : machine().cores), anew,
                           [&] { return measure_peaks(threads); });
}

Peaks peaks_of(Device device, int threads, bool anew) {
  if (device.kind == Device::Kind::cpu) return machine_peaks(threads, anew);
  Peaks peaks =
      known_or_measured(key_of(device), anew, [&] { return measure_device_peaks(device); });
  peaks.device = device;
  peaks.threads = threads > 0 ? threads : machine().cores;
  return peaks;
}

}  // namespace strobe::lab
