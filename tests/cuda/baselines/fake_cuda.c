/* A driver that loads every kernel and runs none, so that cuDNN can make plans without a GPU. It is
 * looked for under the name libcuda.so.1 and must have what cuDNN looks up, or that gives up. */

enum { SUCCESS = 0, STUB_LIBRARY = 34 };

#define REFUSES(name)    \
  int name(void) {       \
    return STUB_LIBRARY; \
  }
#define ACCEPTS(name) \
  int name(void) {    \
    return SUCCESS;   \
  }
#define HANDS_OUT(name)     \
  int name(void** handle) { \
    static int object;      \
    *handle = &object;      \
    return SUCCESS;         \
  }

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return SUCCESS;
}
int cuFuncGetAttribute(int* value) {
  *value = 0;
  return SUCCESS;
}
int cuKernelGetAttribute(int* value) {
  *value = 0;
  return SUCCESS;
}

HANDS_OUT(cuLibraryLoadData)
HANDS_OUT(cuLibraryGetModule)
HANDS_OUT(cuLibraryGetKernel)
HANDS_OUT(cuKernelGetFunction)
HANDS_OUT(cuModuleLoadData)
HANDS_OUT(cuModuleLoadDataEx)
HANDS_OUT(cuModuleGetFunction)
ACCEPTS(cuLibraryUnload)
ACCEPTS(cuModuleUnload)
ACCEPTS(cuFuncSetAttribute)
ACCEPTS(cuKernelSetAttribute)

REFUSES(cuCtxGetCurrent)
REFUSES(cuCtxGetDevice)
REFUSES(cuCtxGetLimit)
REFUSES(cuCtxPopCurrent)
REFUSES(cuCtxPushCurrent)
REFUSES(cuDeviceGet)
REFUSES(cuDeviceGetAttribute)
REFUSES(cuDeviceGetCount)
REFUSES(cuDevicePrimaryCtxRelease)
REFUSES(cuDevicePrimaryCtxReset)
REFUSES(cuDevicePrimaryCtxRetain)
REFUSES(cuGetErrorName)
REFUSES(cuGetErrorString)
REFUSES(cuInit)
REFUSES(cuLaunchCooperativeKernel)
REFUSES(cuLaunchKernel)
REFUSES(cuLaunchKernelEx)
REFUSES(cuLibraryLoadFromFile)
REFUSES(cuLinkAddData)
REFUSES(cuLinkAddData_v2)
REFUSES(cuLinkAddFile_v2)
REFUSES(cuLinkComplete)
REFUSES(cuLinkCreate)
REFUSES(cuLinkCreate_v2)
REFUSES(cuLinkDestroy)
REFUSES(cuMemcpyDtoH_v2)
REFUSES(cuModuleGetGlobal_v2)
REFUSES(cuModuleLoadFatBinary)
REFUSES(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSES(cuOccupancyMaxPotentialClusterSize)
REFUSES(cuStreamGetCtx)
REFUSES(cuStreamSynchronize)
REFUSES(cuTensorMapEncodeTiled)
