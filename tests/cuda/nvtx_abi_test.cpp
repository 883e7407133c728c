// What core/nvtx.h declares is what NVTX's headers say. Nothing runs: it compiles, or it does not.
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <cstddef>

#include "core/nvtx.h"

namespace strobe::nvtx::abi {
namespace {

template <class Ours>
constexpr bool same(Ours ours, long theirs) {
  return static_cast<long>(ours) == theirs;
}

static_assert(sizeof(EventAttributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(EventAttributes, category) == offsetof(nvtxEventAttributes_t, category));
static_assert(offsetof(EventAttributes, payload) == offsetof(nvtxEventAttributes_t, payload));
static_assert(offsetof(EventAttributes, message_type) ==
              offsetof(nvtxEventAttributes_t, messageType));
static_assert(offsetof(EventAttributes, message) == offsetof(nvtxEventAttributes_t, message));
static_assert(same(EventAttributes{}.version, NVTX_VERSION));
static_assert(same(EventAttributes{}.message_type, NVTX_MESSAGE_TYPE_ASCII));

static_assert(same(Module::core, NVTX_CB_MODULE_CORE));
static_assert(same(Module::cuda, NVTX_CB_MODULE_CUDA));
static_assert(same(Module::opencl, NVTX_CB_MODULE_OPENCL));
static_assert(same(Module::cuda_runtime, NVTX_CB_MODULE_CUDART));
static_assert(same(Module::core2, NVTX_CB_MODULE_CORE2));
static_assert(same(Module::sync, NVTX_CB_MODULE_SYNC));
static_assert(same(kCoreSize, NVTX_CBID_CORE_SIZE));
static_assert(same(kCudaSize, NVTX_CBID_CUDA_SIZE));
static_assert(same(kOpenclSize, NVTX_CBID_OPENCL_SIZE));
static_assert(same(kCudaRuntimeSize, NVTX_CBID_CUDART_SIZE));
static_assert(same(kCore2Size, NVTX_CBID_CORE2_SIZE));
static_assert(same(kSyncSize, NVTX_CBID_SYNC_SIZE));
static_assert(same(kDomainRangePush, NVTX_CBID_CORE2_DomainRangePushEx));
static_assert(same(kDomainRangePop, NVTX_CBID_CORE2_DomainRangePop));
static_assert(same(kDomainCreate, NVTX_CBID_CORE2_DomainCreateA));

static_assert(same(TableId::callbacks, NVTX_ETID_CALLBACKS));
static_assert(same(TableId::version, NVTX_ETID_VERSIONINFO));
static_assert(sizeof(Callbacks) == sizeof(NvtxExportTableCallbacks));
static_assert(offsetof(Callbacks, get_module) ==
              offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
static_assert(sizeof(VersionInfo) == sizeof(NvtxExportTableVersionInfo));
static_assert(offsetof(VersionInfo, version) == offsetof(NvtxExportTableVersionInfo, version));
static_assert(offsetof(VersionInfo, set_version) ==
              offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion));

TEST(NvtxAbi, IsThatOfTheHeaders) {}

}  // namespace
}  // namespace strobe::nvtx::abi
