//===- Blas.cpp - cuBLAS and cuBLASLt: matmuls are launches ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/DryGpu.h"

#include <cublasLt.h>
#include <cublas_v2.h>

#include <atomic>
#include <cstring>

using namespace accel::dry;

namespace {

DryGpu &gpu() { return DryGpu::get(); }

/// Of the thread's handle: torch gives a handle to one thread at a time and
/// sets the stream before each call.
thread_local cudaStream_t blasStream;

cublasStatus_t product(cudaStream_t stream, const char *name) {
  Lock lock(gpu().mutex);
  gpu().launch(stream, "launches", name);
  return CUBLAS_STATUS_SUCCESS;
}

/// Each is another: torch knows workspaces by the handle.
template <typename Descriptor> cublasStatus_t make(Descriptor *descriptor) {
  static std::atomic<uintptr_t> made{0x10};
  *descriptor = reinterpret_cast<Descriptor>(made += 0x10);
  return CUBLAS_STATUS_SUCCESS;
}

constexpr cublasStatus_t done = CUBLAS_STATUS_SUCCESS;

} // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) { return make(handle); }
cublasStatus_t cublasDestroy_v2(cublasHandle_t) { return done; }
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t stream) {
  blasStream = stream;
  return done;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void *, size_t) {
  return done;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t *mode) {
  *mode = CUBLAS_DEFAULT_MATH;
  return done;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t mode) {
  Lock lock(gpu().mutex);
  if (mode & CUBLAS_TF32_TENSOR_OP_MATH)
    gpu().warn("TF32 is asked for");
  return done;
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t,
                                       cublasPointerMode_t *mode) {
  *mode = CUBLAS_POINTER_MODE_HOST;
  return done;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t) {
  return done;
}
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t, int) { return done; }

using Op = cublasOperation_t;
using Handle = cublasHandle_t;

cublasStatus_t cublasGemmEx(Handle, Op, Op, int, int, int, const void *,
                            const void *, cudaDataType, int, const void *,
                            cudaDataType, int, const void *, void *,
                            cudaDataType, int, cublasComputeType_t,
                            cublasGemmAlgo_t) {
  return product(blasStream, "cublasGemmEx");
}
cublasStatus_t
cublasGemmStridedBatchedEx(Handle, Op, Op, int, int, int, const void *,
                           const void *, cudaDataType, int, long long,
                           const void *, cudaDataType, int, long long,
                           const void *, void *, cudaDataType, int, long long,
                           int, cublasComputeType_t, cublasGemmAlgo_t) {
  return product(blasStream, "cublasGemmStridedBatchedEx");
}
cublasStatus_t cublasSgemmEx(Handle, Op, Op, int, int, int, const float *,
                             const void *, cudaDataType, int, const void *,
                             cudaDataType, int, const float *, void *,
                             cudaDataType, int) {
  return product(blasStream, "cublasSgemmEx");
}
cublasStatus_t cublasSgemm_v2(Handle, Op, Op, int, int, int, const float *,
                              const float *, int, const float *, int,
                              const float *, float *, int) {
  return product(blasStream, "cublasSgemm");
}
cublasStatus_t cublasSgemmStridedBatched(Handle, Op, Op, int, int, int,
                                         const float *, const float *, int,
                                         long long, const float *, int,
                                         long long, const float *, float *, int,
                                         long long, int) {
  return product(blasStream, "cublasSgemmStridedBatched");
}
cublasStatus_t cublasDgemm_v2(Handle, Op, Op, int, int, int, const double *,
                              const double *, int, const double *, int,
                              const double *, double *, int) {
  return product(blasStream, "cublasDgemm");
}
cublasStatus_t cublasStrsm_v2(Handle, cublasSideMode_t, cublasFillMode_t, Op,
                              cublasDiagType_t, int, int, const float *,
                              const float *, int, float *, int) {
  return product(blasStream, "cublasStrsm");
}
cublasStatus_t cublasStrsmBatched(Handle, cublasSideMode_t, cublasFillMode_t,
                                  Op, cublasDiagType_t, int, int, const float *,
                                  const float *const[], int, float *const[],
                                  int, int) {
  return product(blasStream, "cublasStrsmBatched");
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *descriptor,
                                        cublasComputeType_t, cudaDataType_t) {
  return make(descriptor);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t) { return done; }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t,
                                              cublasLtMatmulDescAttributes_t,
                                              const void *, size_t) {
  return done;
}
cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  return make(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return done;
}
cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                     cublasLtMatmulPreferenceAttributes_t,
                                     const void *, size_t) {
  return done;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                          cudaDataType, uint64_t, uint64_t,
                                          int64_t) {
  return make(layout);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t) {
  return done;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t,
                                                cublasLtMatrixLayoutAttribute_t,
                                                const void *, size_t) {
  return done;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
    cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t results[],
    int *count) {
  std::memset(&results[0], 0, sizeof results[0]);
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return done;
}
cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *,
    cublasLtMatrixLayout_t, const void *, cublasLtMatrixLayout_t, const void *,
    const void *, cublasLtMatrixLayout_t, void *, cublasLtMatrixLayout_t,
    const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t stream) {
  return product(stream, "cublasLtMatmul");
}

} // extern "C"
