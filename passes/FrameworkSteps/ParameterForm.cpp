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

std::optional<accel::QuantizedParam>
accel::packQuantized(sharding::ParamOp op, FrameworkKind framework,
                     int64_t rounding, StepParameter &parameter) {
  std::optional<QuantizedParam> held = quantizedParam(op);
  if (!held)
    return std::nullopt;
  auto rounded = [&](int64_t bytes) {
    return (bytes + rounding - 1) / rounding * rounding;
  };
  parameter.packedBytes = held->weight.packedBytes;
  parameter.dtype = held->storage;
  // int32 that is viewed in a float's dtype was made a parameter for FSDP1.
  // FSDP2's preparation ignores parameters that are packed in bytes: each
  // rank keeps them whole (ignored_params in fsdp2_prepare_model of
  // accelerate/utils/fsdp_utils.py, from 1.14 on).
  parameter.packedIsParameter = (plan::describe(held->format).isParameter &&
                                 framework != FrameworkKind::Fsdp2) ||
                                plan::itemSize(held->storage) == 2;
  if (!parameter.packedIsParameter)
    parameter.replicatedBytes += rounded(held->weight.packedBytes);
  for (int64_t bytes : held->weight.scales)
    parameter.replicatedBytes += rounded(bytes);
  return held;
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
