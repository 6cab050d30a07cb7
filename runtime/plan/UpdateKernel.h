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

namespace accel::plan {

/// One kernel for all that the update does, one kernel per operation over lists
/// of tensors, or one per operation and tensor.
enum class UpdateKernel { Fused, Foreach, ForLoop };
constexpr int numUpdateKernels = 3;

struct OptimizerDescription;
struct OptimizerRule;

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_UPDATEKERNEL_H
