#include "cuda/driver/nvml.h"

#include "core/shared_object.h"
#include "core/text.h"

namespace strobe::cuda::driver {

Nvml load_nvml() {
  const SharedObject object({"libnvidia-ml.so.1"}, "STROBE_NVML");
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

}  // namespace strobe::cuda::driver
