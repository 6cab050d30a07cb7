//===- FakeCuda.cpp - A device for torch's allocator ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/FakeCuda.h"

#include <c10/cuda/PeerToPeerAccess.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <map>
#include <string>

FakeCuda &fakeCuda() {
  static FakeCuda device;
  return device;
}

namespace {

uintptr_t nextAddress = uintptr_t(1) << 40;
std::map<uintptr_t, int64_t> segments;
std::map<CUmemGenericAllocationHandle, int64_t> handles;
cudaError_t lastError = cudaSuccess;

bool take(int64_t bytes) {
  FakeCuda &device = fakeCuda();
  if (device.capacityBytes > 0 &&
      device.usedBytes + bytes > device.capacityBytes)
    return false;
  device.usedBytes += bytes;
  return true;
}

uintptr_t range(int64_t bytes) {
  const uintptr_t address = nextAddress;
  nextAddress += static_cast<uintptr_t>(bytes);
  return address;
}

// The driver's part: growing segments.

CUresult reserveRange(CUdeviceptr *pointer, size_t bytes, size_t, CUdeviceptr,
                      unsigned long long) {
  *pointer = range(static_cast<int64_t>(bytes));
  return CUDA_SUCCESS;
}
CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
                const CUmemAllocationProp *, unsigned long long) {
  if (!take(static_cast<int64_t>(bytes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  static CUmemGenericAllocationHandle next = 1;
  *handle = next++;
  handles[*handle] = static_cast<int64_t>(bytes);
  return CUDA_SUCCESS;
}
CUresult releaseHandle(CUmemGenericAllocationHandle handle) {
  fakeCuda().usedBytes -= handles[handle];
  handles.erase(handle);
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
CUresult errorText(CUresult, const char **text) {
  *text = "error of the made-up device";
  return CUDA_SUCCESS;
}
CUresult nothing() { return CUDA_SUCCESS; }

} // namespace

/// c10 asks the driver's management library, which may not be there.
bool c10::cuda::get_fabric_access(c10::DeviceIndex) { return false; }

extern "C" {

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  if (!take(static_cast<int64_t>(bytes)))
    return lastError = cudaErrorMemoryAllocation;
  const uintptr_t address = range(static_cast<int64_t>(bytes));
  segments[address] = static_cast<int64_t>(bytes);
  *pointer = reinterpret_cast<void *>(address);
  return cudaSuccess;
}
cudaError_t cudaFree(void *pointer) {
  fakeCuda().usedBytes -= segments[reinterpret_cast<uintptr_t>(pointer)];
  segments.erase(reinterpret_cast<uintptr_t>(pointer));
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *idle, size_t *total) {
  *total = size_t(1) << 40;
  *idle = *total - static_cast<size_t>(fakeCuda().usedBytes);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
  std::memset(properties, 0, sizeof *properties);
  properties->totalGlobalMem = size_t(1) << 40;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = lastError;
  lastError = cudaSuccess;
  return error;
}
const char *cudaGetErrorString(cudaError_t) { return "made up"; }
const char *cudaGetErrorName(cudaError_t) { return "made up"; }
cudaError_t cudaDriverGetVersion(int *version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t,
                                     cudaStreamCaptureStatus *status,
                                     unsigned long long *, cudaGraph_t *,
                                     const cudaGraphNode_t **,
                                     const cudaGraphEdgeData **, size_t *) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t,
                                  cudaStreamCaptureStatus *status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) {
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  *event = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t
cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                 unsigned long long,
                                 cudaDriverEntryPointQueryResult *result) {
  const std::string name = symbol;
  auto is = [&](const char *known) { return name == known; };
  *function = is("cuMemAddressReserve") ? reinterpret_cast<void *>(reserveRange)
              : is("cuMemCreate")       ? reinterpret_cast<void *>(create)
              : is("cuMemRelease") ? reinterpret_cast<void *>(releaseHandle)
              : is("cuMemGetAllocationGranularity")
                  ? reinterpret_cast<void *>(granularity)
              : is("cuDeviceGetAttribute") ? reinterpret_cast<void *>(attribute)
              : is("cuGetErrorString")     ? reinterpret_cast<void *>(errorText)
                                           : reinterpret_cast<void *>(nothing);
  if (result)
    *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

} // extern "C"
