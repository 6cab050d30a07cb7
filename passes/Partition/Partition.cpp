//===- Partition.cpp - Outline forward and backward -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Partition/Partition.h"

#include "dialects/Aten/Aten.h"
#include "passes/Differentiate/Joint.h"
#include "passes/Loss/ChunkLoss.h"
#include "passes/Partition/FuseLoss.h"
#include "passes/Partition/SplitJoint.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

struct PartitionPass : PassWrapper<PartitionPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PartitionPass)
  StringRef getArgument() const final { return "partition"; }
  StringRef getDescription() const final {
    return "outline the forward and the backward of each joint function";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<aten::AtenDialect>();
  }
  void runOnOperation() override {
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (function.getName().ends_with(jointSuffix) &&
          failed(function->hasAttr(fusedAttr) ? fuseLoss(function)
                                              : splitJoint(function)))
        return signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> accel::createPartitionPass() {
  return std::make_unique<PartitionPass>();
}
void accel::registerPartitionPass() { PassRegistration<PartitionPass>(); }
