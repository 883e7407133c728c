// A stand-in for NVIDIA's driver that runs kernels on the CPU, so that the whole CUDA backend, host
// code and kernels, can be tested where there is no GPU. Modules are what compiler.cpp makes. Work
// is done when it is asked for, one piece at a time, so every stream is always idle; while a stream
// is captured it is written down instead. Its time is told by what kernels multiply, not by a
// clock: the CPU has other things to do.
//
// STROBE_EMULATED_GPU names the architecture, 80 unless it does.

#include "cuda/driver/abi.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/block.h"

namespace abi = strobe::cuda::abi;
using abi::Result;

namespace strobe::cuda::abi {

struct ContextObject {};

using Work = std::function<void()>;
struct GraphNodeObject {
  GraphNodeType type = GraphNodeType::kernel;
};
struct GraphObject {
  std::vector<Work> work{};
  std::vector<GraphNodeObject> nodes{};
};
struct GraphExecObject {
  std::vector<Work> work{};
};
struct StreamObject {
  std::unique_ptr<GraphObject> captured{};
  CaptureMode capture_mode{};
};
struct EventObject {
  long time = 0;
};
struct ModuleObject {
  int file = -1;
  void* library = nullptr;
  std::map<std::string, std::unique_ptr<FunctionObject>> functions{};
};
struct FunctionObject {
  emulated::Call* (*bind)(void**) = nullptr;
};

}  // namespace strobe::cuda::abi

namespace {

/// By kernels.
std::atomic<long> time_spent = 0;

constexpr Result kInvalidValue{1};
constexpr Result kInvalidContext{201};
constexpr Result kNotFound{500};
constexpr Result kLaunchFailed{719};
constexpr Result kCaptureUnsupported{900};

int architecture() {
  const char* const named = std::getenv("STROBE_EMULATED_GPU");
  return named == nullptr ? 80 : std::atoi(named);
}

// ---- memory: between pages that may not be touched, and NaN until it is written

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Never destroyed, like the contexts below: a process frees its last memory when it ends.
std::mutex memory_mutex;
auto& allocations = *new std::map<void*, std::pair<void*, std::size_t>>;  // address to mapping

Result allocate(void** to, std::size_t bytes) {
  constexpr std::size_t kMemory = std::size_t{4} << 30;
  constexpr std::size_t kAlignment = 256;
  if (bytes > kMemory) return Result::out_of_memory;
  const std::size_t used = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t inner = (used + page_bytes() - 1) / page_bytes() * page_bytes();
  const std::size_t total = inner + 2 * page_bytes();
  void* const mapped = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return Result::out_of_memory;
  char* const begin = static_cast<char*>(mapped) + page_bytes();
  mprotect(begin, inner, PROT_READ | PROT_WRITE);
  std::memset(begin, 0xFF, inner);
  *to = begin + inner - used;
  const std::scoped_lock lock(memory_mutex);
  allocations[*to] = {mapped, total};
  return Result::success;
}

Result release(void* address) {
  const std::scoped_lock lock(memory_mutex);
  const auto found = allocations.find(address);
  if (found == allocations.end()) return kInvalidValue;
  munmap(found->second.first, found->second.second);
  allocations.erase(found);
  return Result::success;
}

// ---- streams

/// Does it, or writes it down.
Result enqueue(abi::Stream stream, abi::Work work,
               abi::GraphNodeType type = abi::GraphNodeType::kernel) {
  if (stream != nullptr && stream->captured) {
    stream->captured->work.push_back(std::move(work));
    stream->captured->nodes.push_back({type});
    return Result::success;
  }
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "emulated GPU: %s\n", error.what());
    return kLaunchFailed;
  }
  return Result::success;
}

// ---- captures: what they forbid, to the thread that captures or to all, unless it is relaxed

std::atomic<int> captures_that_forbid_all = 0;
thread_local int captures_of_this_thread = 0;
thread_local abi::CaptureMode thread_mode = abi::CaptureMode::global;

void count_capture(abi::CaptureMode mode, int more) {
  if (mode == abi::CaptureMode::global) captures_that_forbid_all += more;
  if (mode != abi::CaptureMode::relaxed) captures_of_this_thread += more;
}

bool a_capture_forbids() {
  return thread_mode != abi::CaptureMode::relaxed &&
         (captures_that_forbid_all > 0 || captures_of_this_thread > 0);
}

// ---- modules: shared libraries, which end with their section headers

std::size_t bytes_of(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return header.e_shoff + std::size_t{header.e_shentsize} * header.e_shnum;
}

/// A file without a name, with the image in it. It stays open as long as the library is: its number
/// is what the loader tells libraries apart by.
int file_of(const void* image) {
  const int file = memfd_create("module", 0);
  const std::size_t bytes = bytes_of(image);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t written = write(file, static_cast<const char*>(image) + done, bytes - done);
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  return file;
}

// ---- tensors for the unit that copies them

/// Refuses what the real one refuses, and what is not emulated.
Result encode_tiled(abi::TensorMap* map, abi::TensorMapType type, std::uint32_t rank, void* data,
                    const std::uint64_t* sizes, const std::uint64_t* strides,
                    const std::uint32_t* box, const std::uint32_t* element_strides,
                    abi::TensorMapInterleave, abi::TensorMapSwizzle swizzle,
                    abi::TensorMapPromotion, abi::TensorMapFill) {
  constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 32;
  constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;
  constexpr std::uint32_t kMaxBox = 256;
  const bool halves = type == abi::TensorMapType::bfloat16 || type == abi::TensorMapType::float16 ||
                      type == abi::TensorMapType::uint16;
  if (!halves || swizzle == abi::TensorMapSwizzle::none) return kInvalidValue;  // not emulated
  if (rank < 1 || rank > 5 || reinterpret_cast<std::uintptr_t>(data) % 16 != 0)
    return kInvalidValue;
  emulated::TiledTensor tensor{};
  tensor.data = static_cast<char*>(data);
  tensor.mark = emulated::TiledTensor::kMark;
  tensor.rank = static_cast<std::uint16_t>(rank);
  tensor.element_bytes = 2;
  tensor.line_bytes = static_cast<std::uint8_t>(16 << static_cast<int>(swizzle));
  tensor.strides[0] = tensor.element_bytes;
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    if (sizes[axis] == 0 || sizes[axis] > kMaxSize) return kInvalidValue;
    if (box[axis] == 0 || box[axis] > kMaxBox || element_strides[axis] != 1) return kInvalidValue;
    tensor.sizes[axis] = static_cast<std::uint32_t>(std::min(sizes[axis], kMaxSize - 1));
    tensor.box[axis] = static_cast<std::uint16_t>(box[axis]);
    if (axis == 0) continue;
    const std::uint64_t stride = strides[axis - 1];
    if (stride == 0 || stride % 16 != 0 || stride >= kMaxStride) return kInvalidValue;
    tensor.strides[axis] = stride;
  }
  // A line of the box that is shorter than the swizzle's would be allowed.
  if (box[0] * tensor.element_bytes != tensor.line_bytes) return kInvalidValue;
  std::memcpy(map, &tensor, sizeof tensor);
  return Result::success;
}

abi::ContextObject context;
thread_local auto& contexts = *new std::vector<abi::Context>;

}  // namespace

extern "C" {

// ---- what there is

Result cuDriverGetVersion(int* version) {
  *version = 12000;
  return Result::success;
}
Result cuInit(unsigned) {
  return Result::success;
}
Result cuGetErrorName(Result, const char** name) {
  *name = "CUDA_ERROR_EMULATED";
  return Result::success;
}
Result cuGetErrorString(Result, const char** text) {
  *text = "see the standard error";
  return Result::success;
}
Result cuGetProcAddress_v2(const char* name, void** function, int, std::uint64_t, int*) {
  if (std::strcmp(name, "cuTensorMapEncodeTiled") != 0) return kNotFound;
  *function = reinterpret_cast<void*>(&encode_tiled);
  return Result::success;
}
Result cuDeviceGet(abi::DeviceId* device, int) {
  *device = 0;
  return Result::success;
}
Result cuDeviceGetCount(int* count) {
  *count = 1;
  return Result::success;
}
Result cuDeviceGetName(char* name, int bytes, abi::DeviceId) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "emulated GPU");
  return Result::success;
}
Result cuDeviceGetPCIBusId(char* name, int bytes, abi::DeviceId) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "ffff:ff:ff.f");
  return Result::success;
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, abi::DeviceId) {
  *bytes = std::size_t{4} << 30;
  return Result::success;
}
Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{4} << 30;
  return Result::success;
}
Result cuDeviceGetAttribute(int* value, abi::DeviceAttribute which, abi::DeviceId) {
  using Attribute = abi::DeviceAttribute;
  const bool wide = architecture() == 80 || architecture() == 90;
  const int shared = !wide ? 99 : architecture() == 80 ? 163 : 227;
  switch (which) {
    case Attribute::multiprocessor_count:
      *value = 4;
      break;
    case Attribute::l2_cache_size:
      *value = 1 << 20;
      break;
    case Attribute::compute_capability_major:
      *value = architecture() / 10;
      break;
    case Attribute::compute_capability_minor:
      *value = architecture() % 10;
      break;
    case Attribute::max_shared_memory_per_block_optin:
      *value = shared * 1024;
      break;
  }
  return Result::success;
}

// ---- contexts

Result cuDevicePrimaryCtxRetain(abi::Context* to, abi::DeviceId) {
  *to = &context;
  return Result::success;
}
Result cuCtxPushCurrent_v2(abi::Context pushed) {
  contexts.push_back(pushed);
  return Result::success;
}
Result cuCtxPopCurrent_v2(abi::Context* popped) {
  if (contexts.empty()) return kInvalidValue;
  *popped = contexts.back();
  contexts.pop_back();
  return Result::success;
}
Result cuCtxGetCurrent(abi::Context* current) {
  *current = contexts.empty() ? nullptr : contexts.back();
  return Result::success;
}
Result cuCtxGetDevice(abi::DeviceId* device) {
  *device = 0;
  return Result::success;
}
Result cuCtxResetPersistingL2Cache() {
  return Result::success;
}

// ---- streams, events, graphs

Result cuStreamCreate(abi::Stream* stream, unsigned) {
  *stream = new abi::StreamObject;
  return Result::success;
}
Result cuStreamDestroy_v2(abi::Stream stream) {
  delete stream;
  return Result::success;
}
Result cuStreamSynchronize(abi::Stream) {
  return Result::success;
}
Result cuEventCreate(abi::Event* event, unsigned) {
  *event = new abi::EventObject;
  return Result::success;
}
Result cuEventDestroy_v2(abi::Event event) {
  delete event;
  return Result::success;
}
Result cuEventRecord(abi::Event event, abi::Stream stream) {
  return enqueue(stream, [event] { event->time = time_spent; });
}
Result cuEventSynchronize(abi::Event) {
  return Result::success;
}
Result cuEventQuery(abi::Event) {
  return Result::success;
}
Result cuEventElapsedTime(float* milliseconds, abi::Event start, abi::Event end) {
  constexpr float kPerMillisecond = 1e5;
  *milliseconds = static_cast<float>(end->time - start->time) / kPerMillisecond;
  return Result::success;
}
Result cuStreamBeginCapture_v2(abi::Stream stream, abi::CaptureMode mode) {
  stream->captured = std::make_unique<abi::GraphObject>();
  stream->capture_mode = mode;
  count_capture(mode, 1);
  return Result::success;
}
Result cuThreadExchangeStreamCaptureMode(abi::CaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return Result::success;
}
Result cuStreamEndCapture(abi::Stream stream, abi::Graph* graph) {
  *graph = stream->captured.release();
  count_capture(stream->capture_mode, -1);
  return Result::success;
}
Result cuGraphInstantiateWithFlags(abi::GraphExec* exec, abi::Graph graph, unsigned long long) {
  *exec = new abi::GraphExecObject{graph->work};
  return Result::success;
}
Result cuGraphLaunch(abi::GraphExec exec, abi::Stream stream) {
  return enqueue(stream, [exec] {
    for (const abi::Work& work : exec->work) work();
  });
}
Result cuGraphGetNodes(abi::Graph graph, abi::GraphNode* nodes, std::size_t* count) {
  for (std::size_t i = 0; nodes != nullptr && i < graph->nodes.size(); ++i)
    nodes[i] = &graph->nodes[i];
  *count = graph->nodes.size();
  return Result::success;
}
Result cuGraphNodeGetType(abi::GraphNode node, abi::GraphNodeType* type) {
  *type = node->type;
  return Result::success;
}
Result cuGraphDestroy(abi::Graph graph) {
  delete graph;
  return Result::success;
}
Result cuGraphExecDestroy(abi::GraphExec exec) {
  delete exec;
  return Result::success;
}

// ---- memory

Result cuMemAlloc_v2(abi::DevicePointer* to, std::size_t bytes) {
  if (a_capture_forbids()) return kCaptureUnsupported;
  return allocate(to, bytes);
}
Result cuMemFree_v2(abi::DevicePointer address) {
  return release(address);
}
Result cuMemcpyAsync(abi::DevicePointer to, const void* from, std::size_t bytes,
                     abi::Stream stream) {
  return enqueue(
      stream, [=] { std::memmove(to, from, bytes); }, abi::GraphNodeType::copy);
}
Result cuMemsetD8Async(abi::DevicePointer to, unsigned char value, std::size_t bytes,
                       abi::Stream stream) {
  return enqueue(
      stream, [=] { std::memset(to, value, bytes); }, abi::GraphNodeType::fill);
}

// ---- modules and launches

Result cuModuleLoadData(abi::Module* module, const void* image) {
  if (a_capture_forbids()) return kCaptureUnsupported;
  const int file = file_of(image);
  void* const library =
      dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "emulated GPU: %s\n", dlerror());
    close(file);
    return kInvalidValue;
  }
  *module = new abi::ModuleObject{.file = file, .library = library};
  return Result::success;
}
Result cuModuleUnload(abi::Module module) {
  dlclose(module->library);
  close(module->file);
  delete module;
  return Result::success;
}
Result cuModuleGetFunction(abi::Function* function, abi::Module module, const char* name) {
  void* const symbol = dlsym(module->library, (std::string("emulated_") + name).c_str());
  if (symbol == nullptr) return kNotFound;
  auto& place = module->functions[name];
  place = std::make_unique<abi::FunctionObject>();
  std::memcpy(&place->bind, &symbol, sizeof symbol);
  *function = place.get();
  return Result::success;
}
Result cuFuncGetAttribute(int* value, abi::FunctionAttribute, abi::Function) {
  *value = 0;
  return Result::success;
}
Result cuFuncSetAttribute(abi::Function, abi::FunctionAttribute, int) {
  return Result::success;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, abi::Function, int, std::size_t) {
  if (contexts.empty()) return kInvalidContext;
  *blocks = 1;
  return Result::success;
}
Result cuLaunchKernelEx(const abi::LaunchConfig* config, abi::Function function, void** parameters,
                        void**) {
  static std::mutex one_at_a_time;
  const std::shared_ptr<const emulated::Call> call(function->bind(parameters));
  const auto extent = [](const abi::Extent& e) { return emulated::Extent{e.x, e.y, e.z}; };
  unsigned cluster = 1;  // along the first axis, as far as that is emulated
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const abi::LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == abi::LaunchAttributeId::cluster_dimension)
      cluster = attribute.value.cluster.x;
  }
  if (config->grid.x % cluster != 0) return kInvalidValue;
  return enqueue(config->stream, [call, grid = extent(config->grid), block = extent(config->block),
                                  cluster, shared = config->shared_bytes] {
    const std::scoped_lock lock(one_at_a_time);
    time_spent += call->launch(grid, block, cluster, shared);
  });
}

}  // extern "C"
