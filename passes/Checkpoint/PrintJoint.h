//===- PrintJoint.h - Joint graphs as text ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_CHECKPOINT_PRINTJOINT_H
#define ACCEL_PASSES_CHECKPOINT_PRINTJOINT_H

namespace accel {
/// `print-joint{device=}`: writes to stdout the module's joint functions as
/// graphs (JointJson.h), a JSON list.
void registerPrintJointPass();
} // namespace accel

#endif // ACCEL_PASSES_CHECKPOINT_PRINTJOINT_H
