//===- EagerForm.h - Functions as transformers' modules compute -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_KERNELS_EAGERFORM_H
#define ACCEL_PASSES_KERNELS_EAGERFORM_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

namespace accel {

/// Brings the functions and the graph of `module`, which have no gradients and
/// no kernels yet, into the form in which transformers' modules compute them,
/// as far as that decides what autograd saves: slices by lists, masks that the
/// model makes once for all layers, parts that it computes ahead, and the load
/// balancing loss of a mixture, which transformers computes of all layers'
/// logits after the last layer; and what encoders do in ways of their own
/// (EagerEncoders.h). `cpu`: for CPUs. Attributes of dialects/Aten/Eager.h say
/// where.
mlir::LogicalResult toEagerForm(mlir::ModuleOp module, bool cpu);

} // namespace accel

#endif // ACCEL_PASSES_KERNELS_EAGERFORM_H
