// As much of NVML as is read of a GPU. It knows one, at the place of the fake driver's first.
//   STROBE_FAKE_CLOCK_REASONS   the mask of what keeps the clocks down (4, the power cap)
//   STROBE_FAKE_PROCESSES       how many others compute there, the first of them process 1 (2)
// It is set up badly: less power than it was built for, no persistence, and process 1 is there too.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default"))) int

enum { kSuccess = 0, kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7 };

static int gpu;

struct Memory {
  unsigned long long total, free, used;
};

API nvmlInit_v2(void) {
  return kSuccess;
}
API nvmlShutdown(void) {
  return kSuccess;
}

API nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  strncpy(text, "13.0", length);
  return kSuccess;
}
API nvmlSystemGetDriverVersion(char* text, unsigned length) {
  strncpy(text, "580.00", length);
  return kSuccess;
}

API nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (strcmp(id, "0000:01:00.0") != 0) return kNotFound;
  *device = &gpu;
  return kSuccess;
}

API nvmlDeviceGetClockInfo(void* device, int which, unsigned* mhz) {
  if (device != &gpu) return kNotFound;
  *mhz = which == 1 ? 1755 : which == 2 ? 3201 : 0;
  return kSuccess;
}

API nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 612500;
  return device == &gpu ? kSuccess : kNotFound;
}

// A sensor that this GPU does not have.
API nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  (void)device, (void)sensor, (void)celsius;
  return kNotSupported;
}

API nvmlDeviceGetMemoryInfo(void* device, struct Memory* memory) {
  *memory = (struct Memory){80000000000, 77000000000, 3000000000};
  return device == &gpu ? kSuccess : kNotFound;
}

API nvmlDeviceGetMaxClockInfo(void* device, int which, unsigned* mhz) {
  if (device != &gpu) return kNotFound;
  *mhz = which == 1 ? 1980 : which == 2 ? 3201 : 0;
  return kSuccess;
}

API nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  *milliwatts = 500000;
  return device == &gpu ? kSuccess : kNotFound;
}
API nvmlDeviceGetPowerManagementDefaultLimit(void* device, unsigned* milliwatts) {
  *milliwatts = 700000;
  return device == &gpu ? kSuccess : kNotFound;
}

API nvmlDeviceGetPersistenceMode(void* device, int* mode) {
  *mode = 0;
  return device == &gpu ? kSuccess : kNotFound;
}

struct Process {
  unsigned id;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

API nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count,
                                            struct Process* processes) {
  const char* text = getenv("STROBE_FAKE_PROCESSES");
  const unsigned others = text == NULL ? 2 : (unsigned)atoi(text);
  const unsigned room = *count, own = (unsigned)getpid();
  if (device != &gpu) return kNotFound;
  *count = others + 1;
  if (room < *count) return kInsufficientSize;
  processes[0] = (struct Process){own, 1000000, 0, 0};
  for (unsigned i = 1; i <= others; ++i)
    processes[i] = (struct Process){i + (i >= own), i == 1 ? 2000000000 : ~0ULL, 0, 0};
  return kSuccess;
}

API nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* mask) {
  const char* text = getenv("STROBE_FAKE_CLOCK_REASONS");
  *mask = text == NULL ? 4 : strtoull(text, NULL, 0);
  return device == &gpu ? kSuccess : kNotFound;
}
