//===- ParameterForm.cpp - What a module's parameter is -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/ParameterForm.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Spec.h"
#include "runtime/plan/Mesh.h"

using namespace mlir;

RankedTensorType accel::ownType(sharding::ParamOp op) {
  auto spec = op.getSpecAttr();
  return spec ? sharding::localType(spec, op.getTensorType(),
                                    sharding::findOnly<sharding::MeshOp>(
                                        op->getParentOfType<ModuleOp>()))
              : op.getTensorType();
}

bool accel::isOfSharedExperts(sharding::ParamOp op) {
  return sharding::isShardedBy(op.getSpecAttr(), 0, plan::expertAxis);
}

bool accel::isTable(Value argument) {
  return llvm::any_of(argument.getUsers(), [&](Operation *user) {
    auto rows = dyn_cast<aten::EmbeddingOp>(user);
    return rows && rows.getWeight() == argument;
  });
}

bool accel::isBuffer(BlockArgument argument) {
  auto graph = cast<sharding::GraphOp>(argument.getOwner()->getParentOp());
  Attribute name = graph.getArgNames()[argument.getArgNumber()];
  return llvm::any_of(
      graph->getParentOfType<ModuleOp>().getOps<sharding::BufferOp>(),
      [&](sharding::BufferOp op) { return op.getFqnAttr() == name; });
}
