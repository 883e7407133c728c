#include "cuda/driver/nvml.h"

#include <unistd.h>

#include "core/text.h"

namespace strobe::cuda::driver {
namespace {

SharedObject nvml_library() {
  return SharedObject({"libnvidia-ml.so.1"}, "STROBE_NVML");
}

enum class Clock : int { processors = 1, memory = 2 };

struct MemoryInfo {
  unsigned long long total, free, used;
};

struct ProcessInfo {
  unsigned id;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

/// What a function of the library answers: the last of its parameters. Nothing if there is no such
/// function, or if it fails: not every GPU has every sensor.
template <class Answer, class... Parameters>
std::optional<Answer> ask(const SharedObject& nvml, const char* name, void* gpu,
                          Parameters... parameters) {
  int (*function)(void*, Parameters..., Answer*) = nullptr;
  Answer answer{};
  if (!nvml.find(name, function) || function(gpu, parameters..., &answer) != 0) return std::nullopt;
  return answer;
}

std::optional<int> as_int(std::optional<unsigned> value) {
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<double> watts(std::optional<unsigned> milliwatts) {
  if (!milliwatts) return std::nullopt;
  return *milliwatts / 1e3;
}

std::vector<ProcessInfo> processes_of(const SharedObject& nvml, void* gpu) {
  constexpr int kInsufficientSize = 7;
  constexpr int kTries = 4;  // for more may have begun since they were counted
  int (*list)(void*, unsigned*, ProcessInfo*) = nullptr;
  if (!nvml.find("nvmlDeviceGetComputeRunningProcesses_v3", list)) return {};
  std::vector<ProcessInfo> found(64);
  for (int i = 0; i < kTries; ++i) {
    auto count = static_cast<unsigned>(found.size());
    const int status = list(gpu, &count, found.data());
    if (status != 0 && status != kInsufficientSize) return {};
    found.resize(count);
    if (status == 0) return found;
  }
  return {};
}

std::vector<DeviceSettings::Process> other_processes(const SharedObject& nvml, void* gpu) {
  constexpr unsigned long long kUnknown = ~0ULL;
  std::vector<DeviceSettings::Process> others;
  for (const ProcessInfo& process : processes_of(nvml, gpu)) {
    if (static_cast<pid_t>(process.id) == getpid()) continue;
    auto& other = others.emplace_back(DeviceSettings::Process{.id = process.id});
    if (process.memory != kUnknown) other.memory_bytes = static_cast<std::int64_t>(process.memory);
  }
  return others;
}

}  // namespace

Nvml load_nvml() {
  const SharedObject object = nvml_library();
  if (!object) {
    return {.missing = concat("there is no NVML, so clocks and power are not recorded: ",
                              object.error(), "; it comes with the NVIDIA driver")};
  }
  Nvml nvml{.path = object.path()};
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*get_version)(char*, unsigned) = nullptr;
  int (*get_driver_version)(char*, unsigned) = nullptr;
  if (!object.find("nvmlInit_v2", init) || !object.find("nvmlShutdown", shutdown) ||
      !object.find("nvmlSystemGetNVMLVersion", get_version) ||
      !object.find("nvmlSystemGetDriverVersion", get_driver_version)) {
    nvml.missing = concat(nvml.path, " is not NVML; STROBE_NVML names another");
    return nvml;
  }
  if (const int status = init(); status != 0) {
    nvml.missing =
        concat("NVML does not start: nvmlInit returns ", status, "; nvidia-smi may say more");
    return nvml;
  }
  const auto text = [](int (*get)(char*, unsigned)) -> std::string {
    char words[96] = {};
    return get(words, sizeof words) == 0 ? words : "";
  };
  nvml.version = text(get_version);
  nvml.driver_version = text(get_driver_version);
  shutdown();
  return nvml;
}

// Started and never shut down: it is read until the process ends.
Sensors::Sensors(const std::string& pci_bus_id) : library_(nvml_library()) {
  int (*init)() = nullptr;
  int (*find)(const char*, void**) = nullptr;
  if (!library_.find("nvmlInit_v2", init) ||
      !library_.find("nvmlDeviceGetHandleByPciBusId_v2", find) || init() != 0) {
    return;
  }
  if (find(pci_bus_id.c_str(), &gpu_) != 0) gpu_ = nullptr;
}

DeviceState Sensors::read() const {
  if (gpu_ == nullptr) return {};
  const auto clock = [this](Clock which) {
    return as_int(ask<unsigned, Clock>(library_, "nvmlDeviceGetClockInfo", gpu_, which));
  };
  DeviceState state{.clock_mhz = clock(Clock::processors),
                    .memory_clock_mhz = clock(Clock::memory)};
  state.power_w = watts(ask<unsigned>(library_, "nvmlDeviceGetPowerUsage", gpu_));
  constexpr int kOfTheChip = 0;
  state.temperature_c =
      as_int(ask<unsigned, int>(library_, "nvmlDeviceGetTemperature", gpu_, kOfTheChip));
  if (const auto memory = ask<MemoryInfo>(library_, "nvmlDeviceGetMemoryInfo", gpu_)) {
    state.memory_used_bytes = static_cast<std::int64_t>(memory->used);
  }
  // Named anew in driver 535; the old name stays.
  if (const auto mask =
          ask<unsigned long long>(library_, "nvmlDeviceGetCurrentClocksThrottleReasons", gpu_)) {
    state.slowed_by = clock_reasons(*mask);
  }
  return state;
}

DeviceSettings Sensors::read_settings() const {
  if (gpu_ == nullptr) return {};
  const auto most = [this](Clock which) {
    return as_int(ask<unsigned, Clock>(library_, "nvmlDeviceGetMaxClockInfo", gpu_, which));
  };
  DeviceSettings settings{
      .most_clock_mhz = most(Clock::processors),
      .most_memory_clock_mhz = most(Clock::memory),
      .power_limit_w = watts(ask<unsigned>(library_, "nvmlDeviceGetEnforcedPowerLimit", gpu_)),
      .usual_power_limit_w =
          watts(ask<unsigned>(library_, "nvmlDeviceGetPowerManagementDefaultLimit", gpu_)),
      .processes = other_processes(library_, gpu_)};
  if (const auto mode = ask<int>(library_, "nvmlDeviceGetPersistenceMode", gpu_))
    settings.persistent = *mode != 0;
  return settings;
}

std::vector<std::string> clock_reasons(unsigned long long mask) {
  constexpr struct {
    unsigned long long bit;
    const char* words;
  } kReasons[] = {
      {0x2, "clocks that were set"}, {0x4, "power cap"},       {0x8, "hardware slowdown"},
      {0x10, "sync boost"},          {0x20, "heat"},           {0x40, "heat (hardware)"},
      {0x80, "power brake"},         {0x100, "display clocks"}};
  std::vector<std::string> reasons;
  for (const auto& reason : kReasons) {
    if ((mask & reason.bit) != 0) reasons.emplace_back(reason.words);
  }
  return reasons;
}

}  // namespace strobe::cuda::driver
