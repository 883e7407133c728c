// A driver whose GPUs are memory of the host: copies and fills happen, kernels do nothing. Time is
// what copies, fills and kernels are said to take, so that tests know it. A thread has the contexts
// that it has pushed, and what belongs to one device is refused where another's is current.
//   STROBE_FAKE_GPUS               how many GPUs there are (1)
//   STROBE_FAKE_GPU_MEMORY         bytes of each (1 GB)
//   STROBE_FAKE_GPU_CAPABILITIES   compute capabilities, "7.5,9.0" (9.0 of those that it leaves
//   out)
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"))) int

enum {
  kSuccess = 0,
  kOutOfMemory = 2,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kMostDevices = 8,
  kMostContexts = 16,
  kL2Bytes = 1 << 20,
  kHeader = 256,
  kMostWork = 4096,
  kKernelUs = 10,
  kLaunchUs = 10
};

/// How everything begins that belongs to a device.
struct Handle {
  int device;
};

struct Event {
  struct Handle handle;
  double us;
};

/// Before the memory itself.
struct Allocation {
  struct Handle handle;
  size_t bytes;
};

/// As far as it is needed of what the driver is given.
struct LaunchConfig {
  unsigned extents[6];
  unsigned shared_bytes;
  void* stream;
};

struct Work {
  int device;
  void* to;  // null: a kernel
  const void* from;
  int byte;
  size_t bytes;
};

struct Graph {
  size_t count;
  struct Work work[kMostWork];
};

static double now_us = 0;
static int kernels_run[kMostDevices];
static size_t used_bytes[kMostDevices];
static struct Graph* captured = NULL;
static _Thread_local void* contexts[kMostContexts];
static _Thread_local int context_count = 0;

static double setting(const char* name, double otherwise) {
  const char* text = getenv(name);
  return text == NULL ? otherwise : atof(text);
}

static size_t memory_bytes(void) {
  return (size_t)setting("STROBE_FAKE_GPU_MEMORY", 1e9);
}

static void* current_context(void) {
  return context_count == 0 ? NULL : contexts[context_count - 1];
}

/// -1 if no context is current.
static int current_device(void) {
  return (int)((char*)current_context() - (char*)0) - 1;
}

static void* new_handle(size_t bytes) {
  struct Handle* handle = calloc(1, bytes);
  handle->device = current_device();
  return handle;
}

/// Whether these may be used now; null is the stream that every device has.
static int usable(const void* one, const void* other) {
  const int device = current_device();
  if (device < 0) return kInvalidContext;
  if (one != NULL && ((const struct Handle*)one)->device != device) return kInvalidHandle;
  if (other != NULL && ((const struct Handle*)other)->device != device) return kInvalidHandle;
  return kSuccess;
}

static size_t free_bytes(void) {
  const size_t all = memory_bytes(), used = used_bytes[current_device()];
  return all > used ? all - used : 0;
}

static void perform(const struct Work* work) {
  if (work->from != NULL) {
    memcpy(work->to, work->from, work->bytes);
  } else if (work->to != NULL) {
    memset(work->to, work->byte, work->bytes);
  } else {
    ++kernels_run[work->device];
  }
  now_us += kKernelUs;
}

static int put(struct Work work, const void* stream) {
  const int error = usable(stream, NULL);
  if (error != kSuccess) return error;
  work.device = current_device();
  if (captured == NULL) {
    if (work.from == NULL) now_us += kLaunchUs;
    perform(&work);
  } else if (captured->count < kMostWork) {
    captured->work[captured->count++] = work;
  }
  return kSuccess;
}

__attribute__((visibility("default"))) int fake_gpu_kernels_run(int device) {
  return kernels_run[device];
}

API cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
API cuInit(unsigned flags) {
  (void)flags;
  return kSuccess;
}
API cuGetErrorName(int error, const char** text) {
  (void)error;
  *text = "CUDA_ERROR_FAKE";
  return kSuccess;
}
API cuGetErrorString(int error, const char** text) {
  (void)error;
  *text = "this GPU is not real";
  return kSuccess;
}
API cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags,
                        int* status) {
  (void)name;
  (void)version;
  (void)flags;
  *function = NULL;
  *status = 1;
  return 500;
}

API cuDeviceGet(int* device, int index) {
  *device = index;
  return kSuccess;
}
API cuDeviceGetCount(int* count) {
  *count = (int)setting("STROBE_FAKE_GPUS", 1);
  return kSuccess;
}
API cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  snprintf(name, (size_t)length, "Fake GPU");
  return kSuccess;
}
API cuDeviceGetPCIBusId(char* name, int length, int device) {
  snprintf(name, (size_t)length, "0000:%02x:00.0", device + 1);
  return kSuccess;
}
API cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = memory_bytes();
  return kSuccess;
}
/// Ten times the compute capability of a device.
static int capability(int device) {
  const char* text = getenv("STROBE_FAKE_GPU_CAPABILITIES");
  for (; text != NULL && device > 0; --device) {
    text = strchr(text, ',');
    if (text != NULL) ++text;
  }
  return text == NULL ? 90 : (int)(10 * atof(text) + 0.5);
}

API cuDeviceGetAttribute(int* value, int attribute, int device) {
  switch (attribute) {
    case 16:
      *value = 4;
      break;  // multiprocessors
    case 38:
      *value = kL2Bytes;
      break;
    case 75:
      *value = capability(device) / 10;
      break;
    case 76:
      *value = capability(device) % 10;
      break;
    case 81:
      *value = 228 * 1024;
      break;  // shared memory of a multiprocessor, and of a block
    case 97:
      *value = 227 * 1024;
      break;
    default:
      *value = 0;
  }
  return kSuccess;
}

API cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = (char*)0 + device + 1;
  return kSuccess;
}
API cuCtxPushCurrent_v2(void* context) {
  if (context_count == kMostContexts) return kInvalidContext;
  contexts[context_count++] = context;
  return kSuccess;
}
API cuCtxPopCurrent_v2(void** context) {
  if (context_count == 0) return kInvalidContext;
  *context = contexts[--context_count];
  return kSuccess;
}
API cuCtxGetCurrent(void** context) {
  *context = current_context();
  return kSuccess;
}
API cuCtxGetDevice(int* device) {
  *device = current_device();
  return *device < 0 ? kInvalidContext : kSuccess;
}

API cuCtxResetPersistingL2Cache(void) {
  return kSuccess;
}

API cuStreamCreate(void** stream, unsigned flags) {
  (void)flags;
  *stream = new_handle(sizeof(struct Handle));
  return usable(*stream, NULL);
}
API cuStreamDestroy_v2(void* stream) {
  free(stream);
  return kSuccess;
}
API cuStreamSynchronize(void* stream) {
  return usable(stream, NULL);
}
API cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  (void)stream;
  (void)event;
  (void)flags;
  return kSuccess;
}

API cuEventCreate(void** event, unsigned flags) {
  (void)flags;
  *event = new_handle(sizeof(struct Event));
  return usable(*event, NULL);
}
API cuEventDestroy_v2(void* event) {
  free(event);
  return kSuccess;
}
API cuEventRecord(void* event, void* stream) {
  ((struct Event*)event)->us = now_us;
  return usable(event, stream);
}
API cuEventSynchronize(void* event) {
  (void)event;
  return kSuccess;
}
API cuEventQuery(void* event) {
  (void)event;
  return kSuccess;
}
API cuEventElapsedTime(float* ms, void* start, void* end) {
  *ms = (float)((((struct Event*)end)->us - ((struct Event*)start)->us) / 1e3);
  return usable(start, end);
}

API cuMemGetInfo_v2(size_t* left, size_t* total) {
  if (current_device() < 0) return kInvalidContext;
  *total = memory_bytes();
  *left = free_bytes();
  return kSuccess;
}
API cuMemAlloc_v2(void** pointer, size_t bytes) {
  char* memory;
  if (current_device() < 0) return kInvalidContext;
  if (bytes > free_bytes()) return kOutOfMemory;
  memory = aligned_alloc(kHeader, (bytes + 2 * kHeader - 1) / kHeader * kHeader);
  if (memory == NULL) return kOutOfMemory;
  *(struct Allocation*)(void*)memory = (struct Allocation){{current_device()}, bytes};
  used_bytes[current_device()] += bytes;
  *pointer = memory + kHeader;
  return kSuccess;
}
API cuMemFree_v2(void* pointer) {
  struct Allocation* memory = (void*)((char*)pointer - kHeader);
  const int error = usable(memory, NULL);
  if (error != kSuccess) return error;
  used_bytes[memory->handle.device] -= memory->bytes;
  free(memory);
  return kSuccess;
}
API cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  (void)flags;
  *pointer = malloc(bytes);
  return kSuccess;
}
API cuMemFreeHost(void* pointer) {
  free(pointer);
  return kSuccess;
}
API cuMemcpyAsync(void* to, const void* from, size_t bytes, void* stream) {
  return put((struct Work){.to = to, .from = from, .bytes = bytes}, stream);
}
API cuMemsetD8Async(void* to, unsigned char byte, size_t bytes, void* stream) {
  return put((struct Work){.to = to, .byte = byte, .bytes = bytes}, stream);
}

API cuModuleLoadData(void** module, const void* image) {
  (void)image;
  *module = new_handle(sizeof(struct Handle));
  return usable(*module, NULL);
}
API cuModuleUnload(void* module) {
  free(module);
  return kSuccess;
}
API cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)name;
  *function = module;
  return kSuccess;
}
API cuFuncGetAttribute(int* value, int attribute, void* function) {
  (void)attribute;
  (void)function;
  *value = 0;
  return kSuccess;
}
API cuFuncSetAttribute(void* function, int attribute, int value) {
  (void)function;
  (void)attribute;
  (void)value;
  return kSuccess;
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                size_t shared) {
  (void)function;
  (void)threads;
  (void)shared;
  *blocks = 1;
  return kSuccess;
}
API cuLaunchKernelEx(const void* config, void* function, void** parameters, void** extra) {
  const int error = usable(function, NULL);
  (void)parameters;
  (void)extra;
  if (error != kSuccess) return error;
  return put((struct Work){0}, ((const struct LaunchConfig*)config)->stream);
}

API cuStreamBeginCapture_v2(void* stream, int mode) {
  (void)stream;
  (void)mode;
  captured = calloc(1, sizeof *captured);
  return kSuccess;
}
API cuThreadExchangeStreamCaptureMode(int* mode) {
  (void)mode;
  return kSuccess;
}
API cuStreamEndCapture(void* stream, void** graph) {
  (void)stream;
  *graph = captured;
  captured = NULL;
  return kSuccess;
}
API cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  (void)flags;
  *exec = malloc(sizeof(struct Graph));
  memcpy(*exec, graph, sizeof(struct Graph));
  return kSuccess;
}
API cuGraphLaunch(void* exec, void* stream) {
  const struct Graph* graph = exec;
  const int error = usable(stream, NULL);
  if (error != kSuccess) return error;
  now_us += kLaunchUs;
  for (size_t i = 0; i < graph->count; ++i) perform(&graph->work[i]);
  return kSuccess;
}
API cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
  struct Graph* all = graph;
  for (size_t i = 0; nodes != NULL && i < all->count; ++i) nodes[i] = &all->work[i];
  *count = all->count;
  return kSuccess;
}
API cuGraphNodeGetType(void* node, int* type) {
  const struct Work* work = node;
  *type = work->from != NULL ? 1 : work->to != NULL ? 2 : 0;  // a copy, a fill, a kernel
  return kSuccess;
}
API cuGraphDestroy(void* graph) {
  free(graph);
  return kSuccess;
}
API cuGraphExecDestroy(void* exec) {
  free(exec);
  return kSuccess;
}
