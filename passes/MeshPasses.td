//===- MeshPasses.td - Shardings of values -----------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which part of which value each rank has: `propagate-sharding` derives it from
// what is decided.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_PASSES_TD
#define ACCEL_PASSES_MESH_PASSES_TD

include "mlir/Pass/PassBase.td"

def PropagateShardingPass : Pass<"propagate-sharding", "::mlir::ModuleOp"> {
  let summary = "derive how each value is sharded from what is decided";
  let description = [{
    From the specs of parameters, of the graph's arguments and of single
    operations, through operators by their sharding rules and through calls, to
    a fixpoint. Where two values that an operator reads ask for different
    shardings of a factor, the one of higher priority decides: what a user
    wrote, what a plan decided, what more parameter bytes are sharded by, what
    flowed in from elsewhere; each conflict leaves a remark. An operator without
    a rule has whole operands and results, also with a remark. Calls of one
    function agree on its specs.

    Writes `sharding.spec` on arguments and results of functions and
    `sharding.specs` on operations and calls. What is replicated has none.
  }];
  let dependentDialects = ["::accel::sharding::ShardingDialect"];
}

def PrintShardingRulesPass
    : Pass<"print-sharding-rules", "::mlir::ModuleOp"> {
  let summary = "print the sharding rule of each aten operation as JSON";
  let description = [{
    To stdout, a list with an entry for each operation of each function, in
    order: {name, factors, operands, results, sizes}, without `factors` where the
    operator has no rule.
  }];
}

#endif // ACCEL_PASSES_MESH_PASSES_TD
