//===- UpdateKernel.h - How an optimizer's update is launched ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Apart from Optimizers.h, so that what only names a kernel or hands a rule on
// does not depend on the descriptions.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_UPDATEKERNEL_H
#define ACCEL_RUNTIME_PLAN_UPDATEKERNEL_H

#include <cstdint>

namespace accel::plan {

/// One kernel for all that the update does, one kernel per operation over lists
/// of tensors, or one per operation and tensor.
enum class UpdateKernel { Fused, Foreach, ForLoop };
constexpr int numUpdateKernels = 3;

/// How a library keeps and updates the states of an optimizer, where that is
/// not torch's way (bitsandbytes/optim/optimizer.py).
struct UpdateHabits {
  /// A call of its own for each parameter, and the host waits for each.
  bool oneByOne = false;
  /// States of at least `pagedElements` lie in managed memory, which the driver
  /// moves to the host where the device is full, and are no tensors of torch's
  /// allocator.
  bool paged = false;
  /// An embedding's states are those of a small parameter, in f32
  /// (transformers' Trainer, create_optimizer).
  bool wideEmbeddings = false;
  bool operator==(const UpdateHabits &) const = default;
};
inline constexpr int64_t pagedElements = 100'000;
/// What the host does for one parameter of such an update, in operators of an
/// eager model (TargetInfo's dispatch_seconds): the Python of its step, a
/// custom operator, and a wait for the device, which computes nothing
/// meanwhile. Measured beside an H100: 39.5 ms for 146 parameters, of which the
/// kernels are 30.0, where an operator takes 15 to 20 us.
inline constexpr double oneByOneOperators = 4;

struct OptimizerDescription;
struct OptimizerRule;

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_UPDATEKERNEL_H
