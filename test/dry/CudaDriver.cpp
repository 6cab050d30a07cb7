//===- CudaDriver.cpp - The driver's part: growing segments ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// torch looks the driver's functions up by name. Those that reserve and map
// memory (expandable segments) are here; the others do nothing.
//
//===----------------------------------------------------------------------===//
#include "test/dry/DryGpu.h"

#include <c10/core/Device.h>
#include <cuda.h>

#include <map>
#include <string>

using namespace accel::dry;

namespace {

DryGpu &gpu() { return DryGpu::get(); }

std::map<CUmemGenericAllocationHandle, size_t> &handles() {
  static auto *map = new std::map<CUmemGenericAllocationHandle, size_t>;
  return *map;
}

CUresult nothing() { return CUDA_SUCCESS; }

CUresult reserveRange(CUdeviceptr *pointer, size_t bytes, size_t, CUdeviceptr,
                      unsigned long long) {
  Lock lock(gpu().mutex);
  void *memory = gpu().reserve(bytes);
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  return memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult freeRange(CUdeviceptr pointer, size_t) {
  Lock lock(gpu().mutex);
  gpu().unreserve(reinterpret_cast<void *>(pointer));
  return CUDA_SUCCESS;
}
CUresult createBytes(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *, unsigned long long) {
  Lock lock(gpu().mutex);
  gpu().context();
  gpu().count("cudaMalloc");
  if (!gpu().take(bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  static CUmemGenericAllocationHandle next = 1;
  *handle = next++;
  handles()[*handle] = bytes;
  return CUDA_SUCCESS;
}
CUresult releaseBytes(CUmemGenericAllocationHandle handle) {
  Lock lock(gpu().mutex);
  gpu().give(handles()[handle]);
  handles().erase(handle);
  return CUDA_SUCCESS;
}
CUresult granularity(size_t *bytes, const CUmemAllocationProp *,
                     CUmemAllocationGranularity_flags) {
  *bytes = 2 << 20;
  return CUDA_SUCCESS;
}
CUresult attribute(int *value, CUdevice_attribute, CUdevice) {
  *value = 0;
  return CUDA_SUCCESS;
}
CUresult contextState(CUdevice device, unsigned *flags, int *active) {
  Lock lock(gpu().mutex);
  *flags = 0;
  *active = gpu().contexts.count(device) != 0;
  return CUDA_SUCCESS;
}
CUresult errorText(CUresult, const char **text) {
  *text = "dry GPU";
  return CUDA_SUCCESS;
}

} // namespace

extern "C" cudaError_t
cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned,
                                 unsigned long long,
                                 cudaDriverEntryPointQueryResult *result) {
  const std::map<std::string, void *> known = {
      {"cuDevicePrimaryCtxGetState", reinterpret_cast<void *>(contextState)},
      {"cuMemAddressReserve", reinterpret_cast<void *>(reserveRange)},
      {"cuMemAddressFree", reinterpret_cast<void *>(freeRange)},
      {"cuMemCreate", reinterpret_cast<void *>(createBytes)},
      {"cuMemRelease", reinterpret_cast<void *>(releaseBytes)},
      {"cuMemGetAllocationGranularity", reinterpret_cast<void *>(granularity)},
      {"cuDeviceGetAttribute", reinterpret_cast<void *>(attribute)},
      {"cuGetErrorString", reinterpret_cast<void *>(errorText)}};
  auto at = known.find(name);
  *function =
      at == known.end() ? reinterpret_cast<void *>(nothing) : at->second;
  if (result)
    *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

/// What the driver's own library (Driver.c) answers from.
extern "C" int dryHasContext(int device) {
  Lock lock(gpu().mutex);
  return gpu().contexts.count(device) != 0;
}

/// c10 asks the driver's management library, which is not there.
namespace c10::cuda {
__attribute__((visibility("default"))) bool
get_fabric_access(c10::DeviceIndex) {
  return false;
}
} // namespace c10::cuda
