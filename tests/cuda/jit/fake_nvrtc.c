// A compiler of the version that it was built for, VERSION, which knows no architecture and
// compiles nothing.
#define API __attribute__((visibility("default"))) int

enum { kSuccess = 0, kInternalError = 5 };

API nvrtcVersion(int* major, int* minor) {
  *major = VERSION;
  *minor = 5;
  return kSuccess;
}
API nvrtcGetNumSupportedArchs(int* count) {
  *count = 0;
  return kSuccess;
}
API nvrtcGetSupportedArchs(int* architectures) {
  (void)architectures;
  return kSuccess;
}

#define REFUSES(name)      \
  API name(void) {         \
    return kInternalError; \
  }
REFUSES(nvrtcCreateProgram)
REFUSES(nvrtcDestroyProgram)
REFUSES(nvrtcCompileProgram)
REFUSES(nvrtcGetProgramLogSize)
REFUSES(nvrtcGetProgramLog)
REFUSES(nvrtcGetCUBINSize)
REFUSES(nvrtcGetCUBIN)
