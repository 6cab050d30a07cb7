//===- Sharding.h - The sharding dialect ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SHARDING_SHARDING_H
#define ACCEL_DIALECTS_SHARDING_SHARDING_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Sharding/ShardingDialect.h.inc"
#include "dialects/Sharding/ShardingEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Sharding/ShardingAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Sharding/ShardingOps.h.inc"

namespace accel::sharding {

/// Argument attribute of a segment function: the parameter's name relative to
/// the path of the call.
constexpr llvm::StringLiteral paramArgAttr = "sharding.param";
/// Of a param: who computes with it gathers it itself, past its unit's hooks,
/// so that it is gathered until the backward ends (StepParameter).
constexpr llvm::StringLiteral staysGatheredAttr = "sharding.stays_gathered";

/// How an argument or result of a segment function is sharded.
constexpr llvm::StringLiteral specArgAttr = "sharding.spec";
/// How the results of an operation, and the graph's arguments, are sharded.
constexpr llvm::StringLiteral specsAttr = "sharding.specs";
constexpr llvm::StringLiteral argSpecsAttr = "sharding.arg_specs";

/// Unit attribute of an operation that joins what an attention made block by
/// block: to compute it again is to attend again.
constexpr llvm::StringLiteral joinedAttr = "sharding.joined_attention";

/// On units and calls of a pipeline: the stage that holds or runs it, an
/// IntegerAttr.
constexpr llvm::StringLiteral stageAttr = "sharding.stage";
/// On the unit of a stage whose parameters an earlier stage holds too: the name
/// of that one's unit, a StringAttr.
constexpr llvm::StringLiteral copyOfAttr = "sharding.copy_of";
/// On the graph of a pipeline whose stages have several chunks of the model
/// each, in turns: how many, an IntegerAttr. Calls are marked with the number
/// of their chunk in the model then, units with their stage.
constexpr llvm::StringLiteral chunksAttr = "sharding.chunks";
/// On the graph of a pipeline whose backward is in two parts, that of inputs
/// and that of weights (zb-h1, of two chunks zb-v): a unit attribute.
constexpr llvm::StringLiteral splitBackwardAttr = "sharding.split_backward";
/// On the graph of a pipeline: why each stage is cut where it is, an array of
/// BecauseAttr.
constexpr llvm::StringLiteral stagesAttr = "sharding.stages";
/// The #sharding.experts of a graph whose mesh has an axis that shares experts.
constexpr llvm::StringLiteral expertsAttr = "sharding.experts";
/// The stage of a unit or a call; 0 without one.
int64_t stageOf(mlir::Operation *op);
/// Chunks of each stage; 1 without a pipeline.
int64_t chunksOf(GraphOp graph);

/// Attribute of the builtin module until it has a job, whose `anatomy` it
/// becomes: what a frontend knows of the model's places.
constexpr llvm::StringLiteral anatomyAttr = "sharding.anatomy";

/// DeepSpeed's sub_group_size, in elements (runtime/zero/config.py).
constexpr int64_t defaultZeroSubGroup = 1'000'000'000;

/// FQN of the parameter `name` under the module `path`.
std::string joinFqn(llvm::StringRef path, llvm::StringRef name);

/// The only op of type `OpT` in `module`, or null.
template <typename OpT> OpT findOnly(mlir::ModuleOp module) {
  auto ops = module.getOps<OpT>();
  return ops.empty() ? OpT() : *ops.begin();
}

/// The request about `what`, or null.
RequestOp findRequest(mlir::ModuleOp module, llvm::StringRef what);

/// Fails with what is wrong, as `where` says it, unless `spec` fits a value of
/// `type` on the mesh: its rank, axes that the mesh has, sizes that divide.
llvm::LogicalResult
verifySpec(SpecAttr spec, mlir::Type type, MeshOp mesh,
           llvm::function_ref<mlir::InFlightDiagnostic()> where);

/// The part of a value of `type` that each rank has.
mlir::RankedTensorType localType(SpecAttr spec, mlir::RankedTensorType type,
                                 MeshOp mesh);

} // namespace accel::sharding

#endif // ACCEL_DIALECTS_SHARDING_SHARDING_H
