//===- CudaModule.cpp - The part that links CUDA --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/CudaModule.h"

#include <c10/core/AllocatorConfig.h>

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace accel::run {

static bool loaded = false;

/// Pinned memory is as large as it is asked for, where torch can do without
/// rounding it up to a power of two.
template <typename Config> static constexpr const char *allocatorSettings() {
  if constexpr (requires { Config::pinned_max_round_threshold(); })
    return "expandable_segments:True,pinned_max_round_threshold_mb:0";
  else
    return "expandable_segments:True";
}

const CudaModule *loadCudaModule(std::string &error) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::path path =
      fs::read_symlink("/proc/self/exe", code).parent_path() / cudaModuleName;
  if (!fs::exists(path, code)) {
    error = "the plan is for CUDA devices, and this accel-run was built "
            "without CUDA (no " +
            path.string() + ")";
    return nullptr;
  }
  if (!std::getenv("PYTORCH_CUDA_ALLOC_CONF"))
    setenv(
        "PYTORCH_ALLOC_CONF",
        allocatorSettings<c10::CachingAllocator::AcceleratorAllocatorConfig>(),
        0);
  // Gathers and reductions have communicators of their own: NCCL keeps their
  // kernels in the order in which the host has queued them.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  void *module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  const void *symbol = module ? dlsym(module, "accelCudaModule") : nullptr;
  if (!symbol) {
    const char *reason = dlerror();
    error = "CUDA support cannot be loaded: " +
            std::string(reason ? reason : path.string());
    return nullptr;
  }
  loaded = true;
  return static_cast<const CudaModule *>(symbol);
}

bool hasCudaModule() { return loaded; }

} // namespace accel::run
