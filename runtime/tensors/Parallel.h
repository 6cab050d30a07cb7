//===- Parallel.h - Loops on torch's threads --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// at::parallel_for is a template that starts threads only in files that are
// compiled with OpenMP, and by the OpenMP of their compiler: clang's library
// would stand beside the GNU one that torch has loaded, with as many threads
// again. Here the loop is given to the library that torch has.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_TENSORS_PARALLEL_H
#define ACCEL_RUNTIME_TENSORS_PARALLEL_H

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace accel::run {

/// Calls `body` with pieces of [begin, end) of at least `grain`, on as many
/// threads as torch's operators use; as at::parallel_for does, and with its
/// pieces. One thread where no OpenMP is loaded or a loop is in one.
void parallelFor(int64_t begin, int64_t end, int64_t grain,
                 c10::function_ref<void(int64_t, int64_t)> body);

} // namespace accel::run

#endif // ACCEL_RUNTIME_TENSORS_PARALLEL_H
