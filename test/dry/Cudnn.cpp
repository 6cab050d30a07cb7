//===- Cudnn.cpp - cuDNN: what its graphs are executed as is a launch -----===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// torch describes attention as a graph to cuDNN's backend, asks for engines
// that can execute it, and for a plan of one of them. Here descriptors hold
// nothing, each graph has one engine without knobs and notes, and its plan
// needs no workspace.
//
//===----------------------------------------------------------------------===//
#include "test/dry/DryGpu.h"

#include <cudnn.h>

#include <cstring>

using namespace accel::dry;

namespace {

/// torch gives a handle to one thread at a time and sets the stream before each
/// call.
thread_local cudaStream_t dnnStream;

constexpr cudnnStatus_t done = CUDNN_STATUS_SUCCESS;

} // namespace

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }
size_t cudnnGetCudartVersion() { return CUDART_VERSION; }
const char *cudnnGetErrorString(cudnnStatus_t) { return "no error"; }
void cudnnGetLastErrorString(char *message, size_t size) {
  if (size)
    *message = 0;
}
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(0x10);
  return done;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return done; }
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  dnnStream = stream;
  return done;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t, cudaStream_t *stream) {
  *stream = dnnStream;
  return done;
}

cudnnStatus_t
cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t,
                             cudnnBackendDescriptor_t *descriptor) {
  *descriptor = reinterpret_cast<cudnnBackendDescriptor_t>(0x10);
  return done;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) {
  return done;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) { return done; }
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t,
                                       cudnnBackendAttributeName_t,
                                       cudnnBackendAttributeType_t, int64_t,
                                       const void *) {
  return done;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t asked, int64_t *count,
                                       void *values) {
  const bool number = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_INT32;
  const bool one = name == CUDNN_ATTR_ENGINEHEUR_RESULTS ||
                   name == CUDNN_ATTR_ENGINECFG_ENGINE || number;
  if (count)
    *count = one ? 1 : 0;
  // Workspace, shared memory: none.
  if (number && asked > 0 && values)
    std::memset(values, 0, type == CUDNN_TYPE_INT64 ? 8 : 4);
  return done;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                  cudnnBackendDescriptor_t) {
  Lock lock(DryGpu::get().mutex);
  DryGpu::get().launch(dnnStream, "launches", "cudnnBackendExecute");
  return done;
}

} // extern "C"
