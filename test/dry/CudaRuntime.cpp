//===- CudaRuntime.cpp - The part of libcudart that torch calls -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/DryGpu.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

using namespace accel::dry;

namespace {

DryGpu &gpu() { return DryGpu::get(); }

/// Names of kernels, by the address of their host side.
std::unordered_map<const void *, const char *> &kernels() {
  static auto *names = new std::unordered_map<const void *, const char *>;
  return *names;
}

cudaError_t launched(const void *function, cudaStream_t stream) {
  Lock lock(gpu().mutex);
  auto name = kernels().find(function);
  gpu().launch(stream, "launches",
               name == kernels().end() ? "?" : name->second);
  return cudaSuccess;
}

int deviceCount() {
  const char *text = std::getenv("DRY_DEVICES");
  return text ? std::atoi(text) : 8;
}

uintptr_t nextEvent() {
  static uintptr_t next = 0x2000;
  return next += 16;
}

thread_local struct {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} configuration;

} // namespace

extern "C" {

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void **__cudaRegisterFatBinary(void *) {
  static void *handle[1];
  return handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int,
                       int) {}
void __cudaRegisterFunction(void **, const char *function, char *,
                            const char *name, int, uint3 *, uint3 *, dim3 *,
                            dim3 *, int *) {
  kernels()[function] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     cudaStream_t stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       void *stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t *>(stream) = configuration.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void *>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void **, size_t,
                               cudaStream_t stream) {
  return launched(reinterpret_cast<const void *>(kernel), stream);
}
cudaError_t cudaLaunchKernel(const void *function, dim3, dim3, void **, size_t,
                             cudaStream_t stream) {
  return launched(function, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                const void *function, void **) {
  return launched(function, config->stream);
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t, cudaFuncAttribute,
                                            int, int) {
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) {
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes,
                                  const void *) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 64;
  attributes->ptxVersion = 90;
  attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes = 232448;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          const void *, int,
                                                          size_t) {
  *blocks = 4;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                   const void *,
                                                                   int, size_t,
                                                                   unsigned) {
  *blocks = 4;
  return cudaSuccess;
}
cudaError_t cudaGetSymbolAddress(void **pointer, const void *) {
  static char symbols[1 << 20];
  *pointer = symbols;
  return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbol(const void *, const void *, size_t, size_t,
                               cudaMemcpyKind) {
  return cudaSuccess;
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

cudaError_t cudaGetDeviceCount(int *count) {
  *count = deviceCount();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
  *device = currentDevice;
  return cudaSuccess;
}
// From CUDA 12 on this makes the context.
cudaError_t cudaSetDevice(int device) {
  Lock lock(gpu().mutex);
  if (device < 0 || device >= deviceCount())
    return cudaErrorInvalidDevice;
  currentDevice = device;
  gpu().context();
  return cudaSuccess;
}
/// An H200, as its data sheet and deviceQuery have it.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
  std::memset(p, 0, sizeof *p);
  std::strcpy(p->name, "dry H200");
  p->totalGlobalMem = gpu().totalBytes();
  p->major = 9;
  p->minor = 0;
  p->multiProcessorCount = 132;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxBlocksPerMultiProcessor = 32;
  p->sharedMemPerBlock = 49152;
  p->sharedMemPerBlockOptin = 232448;
  p->sharedMemPerMultiprocessor = 233472;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->l2CacheSize = 60 << 20;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->memoryBusWidth = 6144;
  p->unifiedAddressing = 1;
  p->concurrentKernels = 1;
  p->textureAlignment = 512;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
  case cudaDevAttrComputeCapabilityMajor:
    *value = 9;
    break;
  case cudaDevAttrMultiProcessorCount:
    *value = 132;
    break;
  case cudaDevAttrMaxThreadsPerBlock:
    *value = 1024;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = 232448;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *value = 49152;
    break;
  case cudaDevAttrMaxGridDimX:
    *value = 2147483647;
    break;
  case cudaDevAttrWarpSize:
    *value = 32;
    break;
  case cudaDevAttrMaxThreadsPerMultiProcessor:
    *value = 2048;
    break;
  default:
    *value = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
  std::snprintf(text, size, "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int, int) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  Lock lock(gpu().mutex);
  gpu().context();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "dry GPU";
}
const char *cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                            : "cudaError";
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) {
  return cudaSuccess;
}
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  Lock lock(gpu().mutex);
  *pointer = gpu().allocate(bytes);
  return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void *pointer) {
  Lock lock(gpu().mutex);
  gpu().release(pointer);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned) {
  Lock lock(gpu().mutex);
  gpu().context();
  gpu().count("cudaHostAlloc");
  constexpr size_t page = 4096;
  const size_t size = (bytes + page - 1) / page * page;
  *pointer = std::aligned_alloc(page, size);
  gpu().pin(*pointer, bytes);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}
cudaError_t cudaFreeHost(void *pointer) {
  Lock lock(gpu().mutex);
  gpu().unpin(pointer);
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned) {
  Lock lock(gpu().mutex);
  gpu().pin(pointer, bytes);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void *pointer) {
  Lock lock(gpu().mutex);
  gpu().unpin(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *idle, size_t *total) {
  Lock lock(gpu().mutex);
  *total = gpu().totalBytes();
  *idle = gpu().freeBytes();
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes,
                                     const void *pointer) {
  Lock lock(gpu().mutex);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->type = gpu().isDevice(pointer)   ? cudaMemoryTypeDevice
                     : gpu().isPinned(pointer) ? cudaMemoryTypeHost
                                               : cudaMemoryTypeUnregistered;
  attributes->devicePointer = const_cast<void *>(pointer);
  attributes->hostPointer = const_cast<void *>(pointer);
  attributes->device = currentDevice;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t stream) {
  Lock lock(gpu().mutex);
  if (const bool number = bytes == sizeof(int32_t) || bytes == sizeof(int64_t);
      number && gpu().isDevice(from) && !gpu().isDevice(to))
    if (const std::optional<int64_t> count = countForHost())
      std::memcpy(const_cast<void *>(from), &*count, bytes);
  gpu().copy(to, from, bytes, stream);
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int,
                                size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       cudaMemcpyKind) {
  Lock lock(gpu().mutex);
  gpu().copy(to, from, bytes, nullptr);
  gpu().synchronize(nullptr);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes,
                            cudaStream_t stream) {
  Lock lock(gpu().mutex);
  gpu().fill(to, value, bytes, stream);
  return cudaSuccess;
}
cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned,
                                         int priority) {
  Lock lock(gpu().mutex);
  gpu().context();
  *stream = gpu().makeStream(priority);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Lock lock(gpu().mutex);
  gpu().synchronize(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  Lock lock(gpu().mutex);
  gpu().wait(stream, event);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  Lock lock(gpu().mutex);
  gpu().synchronizeDevice();
  return cudaSuccess;
}
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
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  Lock lock(gpu().mutex);
  gpu().context();
  *event = reinterpret_cast<cudaEvent_t>(nextEvent());
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, 0);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Lock lock(gpu().mutex);
  gpu().forget(event);
  return cudaSuccess;
}
/// Everything is done as soon as it is asked for, and the thread that asks then
/// knows; or, with DRY_BUSY, is not until the host waits for it. NCCL's
/// watchdog asks too, and what it knows orders no work.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  static const bool busy = std::getenv("DRY_BUSY");
  Lock lock(gpu().mutex);
  if (threadQueues && busy && !gpu().hasPassed(event))
    return cudaErrorNotReady;
  if (threadQueues)
    gpu().synchronizeEvent(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Lock lock(gpu().mutex);
  gpu().record(event, stream);
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Lock lock(gpu().mutex);
  gpu().count("host waits for an event");
  gpu().synchronizeEvent(event);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from,
                                 cudaEvent_t to) {
  Lock lock(gpu().mutex);
  *milliseconds = static_cast<float>(gpu().queuedBetween(from, to));
  return cudaSuccess;
}

} // extern "C"
