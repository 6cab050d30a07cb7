//===- Partition.cpp - Outline forward and backward -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Differentiate/Joint.h"
#include "passes/Loss/LossHead.h"
#include "passes/Partition/FuseLoss.h"
#include "passes/Partition/SplitJoint.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_PARTITIONPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct PartitionPass : accel::impl::PartitionPassBase<PartitionPass> {
  void runOnOperation() override {
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (function.getName().ends_with(jointSuffix) &&
          failed(function->hasAttr(fusedAttr) ? fuseLoss(function)
                                              : splitJoint(function)))
        return signalPassFailure();
  }
};

} // namespace
