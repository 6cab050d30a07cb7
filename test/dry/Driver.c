/* libcuda.so.1 for libcaffe2_nvrtc: what it links, and what it never calls
   where kernels are not compiled at run time. */
#define NOTHING(NAME) int NAME(void) { return 0; }
NOTHING(cuCtxGetCurrent) NOTHING(cuCtxSetCurrent) NOTHING(cuDeviceGet)
NOTHING(cuDeviceGetAttribute) NOTHING(cuDevicePrimaryCtxRetain)
NOTHING(cuFuncGetAttribute) NOTHING(cuFuncSetAttribute)
NOTHING(cuFuncSetCacheConfig) NOTHING(cuGetErrorString)
NOTHING(cuLaunchCooperativeKernel) NOTHING(cuLaunchKernel)
NOTHING(cuLinkAddData_v2) NOTHING(cuLinkComplete) NOTHING(cuLinkCreate_v2)
NOTHING(cuModuleGetFunction) NOTHING(cuModuleLoad) NOTHING(cuModuleLoadData)
NOTHING(cuModuleLoadDataEx) NOTHING(cuModuleUnload)
NOTHING(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NOTHING(cuPointerGetAttribute) NOTHING(cuTensorMapEncodeTiled) NOTHING(cuInit)
/* Of dry-gpu.so. */
extern int dryHasContext(int device) __attribute__((weak));
/* torch makes no context where there is none: it asks here. */
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  *flags = 0;
  *active = dryHasContext && dryHasContext(device);
  return 0;
}
int cuDriverGetVersion(int *version) {
  *version = 13020;
  return 0;
}
