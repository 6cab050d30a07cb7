//===- MeshPasses.td - Shardings of values -----------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which part of which value each rank has: `import-tp-plan` decides it of
// parameters, `propagate-sharding` derives it of all other values, and
// `fold-collectives` leaves out exchanges that cancel.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_PASSES_TD
#define ACCEL_PASSES_MESH_PASSES_TD

include "mlir/Pass/PassBase.td"

def ImportTpPlanPass : Pass<"import-tp-plan", "::mlir::ModuleOp"> {
  let summary = "decide how the model's parameters are sharded over tp";
  let description = [{
    Writes the `spec` of each `sharding.param` that the model's family shards:
    the styles of transformers' `base_model_tp_plan` by parameter name, or, for
    families that have none, a plan derived in the same way (columns before a
    pointwise chain, rows behind it, heads whole). Of layers of one size side by
    side in one weight each is sharded (`[3, "tp"]`); where their sizes differ,
    the weight is whole. Where the mesh has an axis `ep`, experts are sharded over
    it by `base_model_ep_plan`, and over no other. A `spec` that is there is the
    user's and stays. Does nothing where the mesh has neither axis, or both of
    size 1. A dimension that the axis does not divide is an error, with
    the sizes that would fit.
  }];
  let dependentDialects = ["::accel::sharding::ShardingDialect"];
  let options = [
    Option<"axis", "axis", "std::string", "\"tp\"", "the mesh axis">
  ];
}

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

    Joint, forward and backward functions follow by their bindings: a gradient is
    sharded as its value, also where the operands leave it open, and what was
    saved as it was made. The gradient of a parameter may leave as a sum.

    Writes `sharding.spec` on arguments and results of functions and
    `sharding.specs` on operations and calls. What is replicated has none.
  }];
  let dependentDialects = ["::accel::sharding::ShardingDialect"];
}

def FoldCollectivesPass : Pass<"fold-collectives", "::mlir::ModuleOp"> {
  let summary = "leave out collectives that cancel or that repeat";
  let description = [{
    A slice of a sum over the ranks is a reduce-scatter, a slice of a gather is
    what was gathered (along another dimension: an all-to-all), a gather of a
    slice is what was sliced. Equal collectives of one value are one.
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
