#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Ranges for profilers that understand NVTX, such as nsys and ncu. NVTX has no library of its own:
// a program asks the tool that is around it, if there is one, for its functions. What is needed of
// that is declared here; the tests hold it against NVTX's headers where there are some.
namespace strobe::nvtx {

namespace abi {

using Domain = void*;

struct EventAttributes {
  std::uint16_t version = 3;
  std::uint16_t size = sizeof(EventAttributes);
  std::uint32_t category = 0;
  std::int32_t color_type = 0;
  std::uint32_t color = 0;
  std::int32_t payload_type = 0;
  std::int32_t none = 0;
  std::uint64_t payload = 0;
  std::int32_t message_type = 1;  ///< text that ends with a zero
  const char* message = nullptr;
};

using DomainCreate = Domain(const char* name);
using DomainRangePush = int(Domain domain, const EventAttributes* attributes);
using DomainRangePop = int(Domain domain);

/// Functions that a tool fills in, in groups. It is shown where each is to be written.
enum class Module : int { core = 1, cuda = 2, opencl = 3, cuda_runtime = 4, core2 = 5, sync = 6 };
using Function = void (*)();
using FunctionTable = Function**;

/// Places in the tables: as many as any group has, and those that are used of `core2`.
inline constexpr unsigned kCoreSize = 16, kCudaSize = 9, kOpenclSize = 15, kCudaRuntimeSize = 7,
                          kCore2Size = 16, kSyncSize = 7;
inline constexpr unsigned kDomainRangePush = 4, kDomainRangePop = 5, kDomainCreate = 12;

/// What a tool asks for by number.
enum class TableId : std::uint32_t { callbacks = 1, version = 3 };

struct Callbacks {
  std::size_t size;
  int (*get_module)(Module module, FunctionTable* table, unsigned* size);
};

struct VersionInfo {
  std::size_t size;
  std::uint32_t version;
  std::uint32_t none;
  void (*set_version)(std::uint32_t version);
};

using GetTable = const void*(TableId id);
using Initialize = int(GetTable* get_table);

}  // namespace abi

/// Whether a tool listens. The first time it is looked for: the library that NVTX_INJECTION64_PATH
/// names, or one that is in the process already and says so (InitializeInjectionNvtx2_fnptr).
bool listening() noexcept;

/// In the calling thread, while a tool listens.
void push(std::string_view name) noexcept;
void pop() noexcept;

}  // namespace strobe::nvtx
