//===- MeshPasses.td - Shardings of values -----------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which part of which value each rank has: `import-tp-plan` decides it of
// parameters, `propagate-sharding` derives it of all other values,
// `partition-sharding` makes functions of one rank's parts, and
// `fold-collectives` leaves out what cancels.
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
    the weight is whole. A tower beside the base model is whole too, as in
    transformers' plan of the composed model. Where the mesh has an axis `ep`, experts are sharded over
    it by `base_model_ep_plan`, and over no other, unless `decide-experts` has
    shared them: each of a rank's experts is then sharded over tp as well. Another
    `spec` that is there is the user's and stays. Does nothing where the mesh has neither axis, or both of
    size 1. A dimension that the axis does not divide is an error, with
    the sizes that would fit.
  }];
  let dependentDialects = ["::accel::sharding::ShardingDialect"];
  let options = [
    Option<"axis", "axis", "std::string", "\"tp\"", "the mesh axis">,
    Option<"asTransformers", "as-transformers", "bool", "false",
           "whole on every rank is what it is in transformers: logits "
           "(colwise_gather_output), and the gradient of a table while it is "
           "made; else both stay sharded, and so does the loss. A family "
           "without a plan in transformers is an error">
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
    saved as it was made. The gradient of a parameter may leave as a sum, which
    whoever reduces gradients adds up, unless `whole-gradients` is on.

    Writes `sharding.spec` on arguments and results of functions and
    `sharding.specs` on operations and calls. What is replicated has none.

    With `context-axis`, activations are sharded over that axis by their tokens
    everywhere (context parallelism), one part from the start of a sequence and
    one as far from its end for each rank; gradients of parameters leave as sums
    over it. With `heads-axis` it is the same, but a rank has consecutive tokens,
    which attention exchanges for heads (DeepSpeed Ulysses).

    With `sequence-axis`, activations [batch, tokens, features] are sharded over
    that axis by their tokens between calls (sequence parallelism), where it
    divides the sequence: norms, dropout and what is added work on a rank's
    tokens, and the sum of a row-wise layer is scattered instead of reduced.
  }];
  let dependentDialects = ["::accel::sharding::ShardingDialect"];
  let options = [
    Option<"sequenceAxis", "sequence-axis", "std::string", "\"\"",
           "the mesh axis that shards sequences between calls">,
    Option<"contextAxis", "context-axis", "std::string", "\"cp\"",
           "the mesh axis that shards sequences everywhere, where it is one">,
    Option<"headsAxis", "heads-axis", "std::string", "\"sp\"",
           "the same of an axis whose ranks exchange tokens for heads">,
    Option<"wholeGradients", "whole-gradients", "bool", "false",
           "sum gradients of parameters in the function that makes them">
  ];
}

def PartitionShardingPass : Pass<"partition-sharding", "::mlir::ModuleOp"> {
  let summary = "make functions of one rank's parts, with explicit collectives";
  let description = [{
    What `propagate-sharding` wrote becomes types and operations: arguments,
    results and values of functions, and of the graph, have the shapes of a
    rank's part, attributes that hold sizes are the part's, and what a rank lacks
    is exchanged (`sharding.all_reduce`, `all_gather`, `reduce_scatter`,
    `all_to_all`, `slice`). A sum is reduced where it is made; the gradient of
    a parameter may leave its function as a sum. Operands that one rank alone
    adds go through `sharding.first_rank`. Tables whose rows are sharded are read
    by masked look-ups. Specs of values are gone afterwards; those of
    parameters stay, whose types are whole.

    What an operator would have to combine inside (statistics over sharded
    classes, the largest of a sharded dimension) or count (positions) is
    gathered before it, with a remark. An operator without a rule has whole
    operands.

    ```mlir
    %1 = aten.mm %x, %w : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
    %2 = sharding.all_reduce %1 over ["tp"] : tensor<8x64xf32>
    ```

    With `torch-ring`, causal attention over mirrored tokens has the operators
    that torch's context parallelism runs on its last rank: what FSDP2 under
    Accelerate is predicted by. Attention that torch's cannot do is an error.
  }];
  let dependentDialects = ["::accel::sharding::ShardingDialect",
                           "::accel::aten::AtenDialect"];
  let options = [
    Option<"torchRing", "torch-ring", "std::string", "\"\"",
           "allgather or alltoall: how torch's ring attention exchanges keys; "
           "empty: accel-run's attention">
  ];
}

def FoldCollectivesPass : Pass<"fold-collectives", "::mlir::ModuleOp"> {
  let summary = "leave out collectives that cancel or that repeat";
  let description = [{
    A slice of a sum over the ranks is a reduce-scatter, a slice of a gather is
    what was gathered (along another dimension: an all-to-all), a gather of a
    slice is what was sliced. Equal collectives of one value are one, and so
    are two sums that are added, and the gathers of a matrix and of its
    transpose. A slice moves before the view of a sum that it slices. Under
    torch's autograd the one head of keys that a rank has is repeated by a view,
    where several heads are copied.
  }];
  let dependentDialects = ["::accel::sharding::ShardingDialect",
                           "::accel::aten::AtenDialect"];
}

def DispatchExpertsPass : Pass<"dispatch-experts", "::mlir::ModuleOp"> {
  let summary = "send rows to the ranks that have their experts, and back";
  let description = [{
    Where the graph has `sharding.experts`: functions have a rank's part of the
    experts' parameters, each grouped matmul with them is of the rows that the
    ranks send (`sharding.dispatch`), and what is read of these rows otherwise
    than row by row goes back first (`sharding.combine`). Tensors have a place
    for a bound of rows, `sharding.expert_ends` ends the run where more come,
    and costs are those of an even share. Runs before `differentiate`, which
    makes each of the two the other's gradient. An operator that reads experts
    otherwise is an error. Where ranks of one of the axes read the same samples
    (tp), each sends the rows of a part of the tokens, and the sums over a
    token's experts are gathered.

    ```mlir
    %all = sharding.all_gather %ends dim 0 over "ep" : (tensor<1x8xi32>) -> tensor<2x8xi32>
    %own = sharding.expert_ends %all rows 64 over ["ep"] : (tensor<2x8xi32>) -> tensor<4xi32>
    %rows = sharding.dispatch %x, %all over ["ep"] : (tensor<32x16xf32>, tensor<2x8xi32>) -> tensor<64x16xf32>
    %y = aten._grouped_mm %rows, %w, %own rows 32 : (tensor<64x16xf32>, tensor<4x16x24xf32>, tensor<4xi32>) -> tensor<64x24xf32>
    %back = sharding.combine %y, %all over ["ep"] : (tensor<64x24xf32>, tensor<2x8xi32>) -> tensor<32x24xf32>
    ```
  }];
  let dependentDialects = ["::accel::sharding::ShardingDialect",
                           "::accel::aten::AtenDialect"];
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
