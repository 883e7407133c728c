#include "core/nvtx.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace strobe::nvtx {
namespace {

/// Room for the functions of one group, and the table that shows a tool where to write them. The
/// first place of a table is none, and behind the last is an end.
template <unsigned kSize>
class Slots {
 public:
  Slots() {
    for (unsigned i = 1; i < kSize; ++i) places_[i] = &functions_[i];
  }

  template <class F>
  F* function(unsigned place) const {
    return reinterpret_cast<F*>(functions_[place]);
  }

  int show(abi::FunctionTable* table, unsigned* size) {
    if (table != nullptr) *table = places_.data();
    if (size != nullptr) *size = kSize;
    return 1;
  }

 private:
  std::array<abi::Function, kSize> functions_{};
  std::array<abi::Function*, kSize + 1> places_{};
};

struct Tool {
  Slots<abi::kCoreSize> core{};
  Slots<abi::kCudaSize> cuda{};
  Slots<abi::kOpenclSize> opencl{};
  Slots<abi::kCudaRuntimeSize> cuda_runtime{};
  Slots<abi::kCore2Size> core2{};
  Slots<abi::kSyncSize> sync{};

  abi::DomainRangePush* push = nullptr;
  abi::DomainRangePop* pop = nullptr;
  abi::Domain domain = nullptr;
};

/// Never destroyed: threads may still end spans when the process does.
Tool& the_tool() {
  static Tool& tool = *new Tool;
  return tool;
}

int show_module(abi::Module module, abi::FunctionTable* table, unsigned* size) {
  switch (module) {
    case abi::Module::core:
      return the_tool().core.show(table, size);
    case abi::Module::cuda:
      return the_tool().cuda.show(table, size);
    case abi::Module::opencl:
      return the_tool().opencl.show(table, size);
    case abi::Module::cuda_runtime:
      return the_tool().cuda_runtime.show(table, size);
    case abi::Module::core2:
      return the_tool().core2.show(table, size);
    case abi::Module::sync:
      return the_tool().sync.show(table, size);
  }
  return 0;
}

const void* show_table(abi::TableId id) {
  static const abi::Callbacks callbacks{sizeof callbacks, show_module};
  static const abi::VersionInfo version{sizeof version, 3, 0, [](std::uint32_t) {}};
  switch (id) {
    case abi::TableId::callbacks:
      return &callbacks;
    case abi::TableId::version:
      return &version;
  }
  return nullptr;
}

abi::Initialize* find_tool() {
  const char* const path = std::getenv("NVTX_INJECTION64_PATH");
  if (path != nullptr) {
    void* const library = dlopen(path, RTLD_LAZY);
    return library == nullptr
               ? nullptr
               : reinterpret_cast<abi::Initialize*>(dlsym(library, "InitializeInjectionNvtx2"));
  }
  void* const there = dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2_fnptr");
  return there == nullptr ? nullptr : *static_cast<abi::Initialize**>(there);
}

/// Whether there is one that takes ranges.
bool attach() {
  abi::Initialize* const initialize = find_tool();
  if (initialize == nullptr || initialize(show_table) == 0) return false;
  Tool& tool = the_tool();
  tool.push = tool.core2.function<abi::DomainRangePush>(abi::kDomainRangePush);
  tool.pop = tool.core2.function<abi::DomainRangePop>(abi::kDomainRangePop);
  auto* const create = tool.core2.function<abi::DomainCreate>(abi::kDomainCreate);
  if (create != nullptr) tool.domain = create("strobe");
  return tool.push != nullptr && tool.pop != nullptr;
}

}  // namespace

bool listening() noexcept {
  static const bool attached = attach();
  return attached;
}

void push(std::string_view name) noexcept {
  std::array<char, 128> text{};  // a view need not end with a zero
  std::copy_n(name.begin(), std::min(name.size(), text.size() - 1), text.begin());
  const abi::EventAttributes attributes{.message = text.data()};
  the_tool().push(the_tool().domain, &attributes);
}

void pop() noexcept {
  the_tool().pop(the_tool().domain);
}

}  // namespace strobe::nvtx
