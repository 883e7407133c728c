#include "cli/gpu.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/device_check.h"
#include "report/record.h"
#include "report/text.h"
#include "strobe/accelerator.h"

namespace strobe::cli {
namespace {

using nlohmann::json;

void line(std::FILE* out, const std::string& what, const std::string& value) {
  fmt::print(out, "{:<16} {}\n", what, value);
}

/// "/lib/libcuda.so.1 (CUDA 13.0)", and why it cannot be used if it cannot.
std::string library_text(const LoadedLibrary& library, const char* version_of) {
  if (!library.missing.empty()) return library.missing;
  return fmt::format("{} ({} {})", library.path, version_of, library.version);
}

std::string device_text(const CudaDevice& device) {
  const std::string kernels = device.architecture.empty()
                                  ? "too old: wanted is compute capability 8.0"
                                  : fmt::format("kernels for {}", device.architecture);
  return fmt::format("{} (compute capability {}, {}), {} SMs, {}, L2 {}, shared memory {} a block",
                     device.name, device.compute_capability, kernels, device.multiprocessors,
                     lab::bytes_text(device.memory_bytes), lab::bytes_text(device.l2_bytes),
                     lab::bytes_text(device.shared_bytes_per_block));
}

/// How the GPU is, and what on it makes times worse; nothing where nothing tells.
void show_state(std::FILE* out, const CudaDevice& device) {
  if (device.architecture.empty()) return;
  const Accelerator& gpu = accelerator({Device::Kind::cuda, device.index});
  const DeviceState state = gpu.state();
  const DeviceSettings settings = gpu.settings();
  const auto line_if_told = [out](const char* what, const std::string& value) {
    if (!value.empty()) line(out, what, value);
  };
  line_if_told("  clocks", lab::clocks_text(state, settings));
  line_if_told("  power", lab::power_text(state, settings));
  line_if_told("  slowed by", fmt::format("{}", fmt::join(state.slowed_by, ", ")));
  for (const std::string& remark : lab::device_remarks(device.index, state, settings))
    line(out, "  to change", remark);
}

json to_json(const LoadedLibrary& library) {
  if (!library.missing.empty()) return {{"missing", library.missing}};
  return {{"path", library.path}, {"version", library.version}};
}

json to_json(const CudaDevice& device) {
  return {{"index", device.index},
          {"name", device.name},
          {"compute_capability", device.compute_capability},
          {"architecture", device.architecture},
          {"multiprocessors", device.multiprocessors},
          {"memory", device.memory_bytes},
          {"l2", device.l2_bytes},
          {"shared_per_block", device.shared_bytes_per_block}};
}

/// The same as show_state shows.
void add_state(json& record, const CudaDevice& device) {
  if (device.architecture.empty()) return;
  const Accelerator& gpu = accelerator({Device::Kind::cuda, device.index});
  const DeviceState state = gpu.state();
  const DeviceSettings settings = gpu.settings();
  if (const json told = lab::state_record(state); !told.empty()) {
    record["state"] = told;
    record["state"]["slowed_by"] = state.slowed_by;
  }
  if (const json told = lab::settings_record(settings); !told.empty()) record["settings"] = told;
  record["to_change"] = lab::device_remarks(device.index, state, settings);
}

}  // namespace

void show_gpus(std::FILE* out, const CudaStatus& status) {
  if (!status.unavailable.empty()) line(out, "GPU", "none used: " + status.unavailable);
  for (const CudaDevice& device : status.devices) {
    line(out, fmt::format("GPU {}", device.index), device_text(device));
    if (status.unavailable.empty()) show_state(out, device);
  }
  if (!status.backend.missing.empty()) return;  // said already, and nothing else was looked for
  line(out, "  backend", library_text(status.backend, "Strobe"));
  const bool said = status.unavailable == status.driver.missing;
  if (!said || status.driver.missing.empty()) {
    line(out, "  driver", library_text(status.driver, "CUDA"));
  }
  line(out, "  NVRTC", library_text(status.nvrtc, "version"));
  line(out, "  NVML", library_text(status.nvml, "driver"));
  const CudaOpponents opponents = cuda_opponents();
  line(out, "  cuBLAS", library_text(opponents.cublas, "version"));
  line(out, "  cuDNN", library_text(opponents.cudnn, "version"));
  line(out, "  CUPTI", library_text(cuda_profiler(), "version"));
  line(out, "  kernel cache", kernel_cache_folder());
}

json cuda_record(const CudaStatus& status) {
  json devices = json::array();
  for (const CudaDevice& device : status.devices) {
    json& record = devices.emplace_back(to_json(device));
    if (status.unavailable.empty()) add_state(record, device);
  }
  const CudaOpponents opponents = cuda_opponents();
  return {{"unavailable", status.unavailable.empty() ? json(nullptr) : json(status.unavailable)},
          {"backend", to_json(status.backend)},
          {"driver", to_json(status.driver)},
          {"nvrtc", to_json(status.nvrtc)},
          {"nvml", to_json(status.nvml)},
          {"cublas", to_json(opponents.cublas)},
          {"cudnn", to_json(opponents.cudnn)},
          {"cupti", to_json(cuda_profiler())},
          {"devices", devices}};
}

}  // namespace strobe::cli
