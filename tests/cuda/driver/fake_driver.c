// As much of libcuda as is asked before a driver is taken to be one that can be used.

__attribute__((visibility("default"))) int cuDriverGetVersion(int* version) {
  *version = VERSION;
  return 0;
}

__attribute__((visibility("default"))) int cuInit(unsigned flags) {
  (void)flags;
  return INIT;
}

__attribute__((visibility("default"))) int cuGetErrorName(int error, const char** text) {
  (void)error;
  *text = "CUDA_ERROR_FAKE";
  return 0;
}

__attribute__((visibility("default"))) int cuGetErrorString(int error, const char** text) {
  (void)error;
  *text = "this driver is not real";
  return 0;
}
