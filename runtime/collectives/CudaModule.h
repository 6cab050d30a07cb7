//===- CudaModule.h - The part that links CUDA ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// libtorch_cuda costs a process hundreds of MiB and a second to start. It is
// in a module beside accel-run that only plans for CUDA devices load.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_CUDAMODULE_H
#define ACCEL_RUNTIME_COLLECTIVES_CUDAMODULE_H

#include "runtime/collectives/Backend.h"

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <string>

namespace c10d {
class Backend;
class Store;
} // namespace c10d

namespace accel::run {

class Device;

struct CudaModule {
  std::unique_ptr<Device> (*makeDevice)(int localRank, std::string &error);
  c10::intrusive_ptr<c10d::Backend> (*makeNccl)(
      const c10::intrusive_ptr<c10d::Store> &store,
      const GroupDescription &group, std::chrono::milliseconds timeout);
};

/// File name of the module, in the folder of the executable.
constexpr const char *cudaModuleName = "accel-run-cuda.so";

/// Null with a sentence in `error` where it is missing or cannot be loaded.
/// torch's allocator grows segments unless PYTORCH_ALLOC_CONF or
/// PYTORCH_CUDA_ALLOC_CONF says something else: with segments of fixed sizes a
/// fifth of what is reserved may lie idle.
const CudaModule *loadCudaModule(std::string &error);

/// Whether this process has loaded it.
bool hasCudaModule();

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_CUDAMODULE_H
