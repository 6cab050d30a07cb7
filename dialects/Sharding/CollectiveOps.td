//===- CollectiveOps.td - What ranks exchange --------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operations of a function that every rank of the mesh runs on its own part of
// the values: collectives over named axes, and what depends on where a rank
// stands. Types are those of one rank.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SHARDING_COLLECTIVEOPS_TD
#define ACCEL_DIALECTS_SHARDING_COLLECTIVEOPS_TD

include "dialects/Sharding/ShardingBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// A rank's part of dimension `dim` and the whole of it, over one axis. The
/// whole is `pieces` pieces, of each of which a rank has its part; `mirrored`
/// pieces alternate between the order of the ranks and the reverse of it.
class Sharding_DimOp<string mnemonic> : Sharding_Op<mnemonic, [Pure]> {
  let arguments = (ins AnyRankedTensor:$value, I64Attr:$dim, StrAttr:$axis,
                       DefaultValuedAttr<I64Attr, "1">:$pieces,
                       UnitAttr:$mirrored);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $value `dim` $dim `over` $axis (`pieces` $pieces^)?
    (`mirrored` $mirrored^)? attr-dict `:` functional-type($value, $result)
  }];
  let hasVerifier = 1;
}

def Sharding_ReduceKind
    : I32EnumAttr<"ReduceKind", "how values of ranks are combined",
                  [I32EnumAttrCase<"Sum", 0, "sum">,
                   I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::accel::sharding";
}

def Sharding_AllReduceOp
    : Sharding_Op<"all_reduce", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "the sum, or the largest, over the ranks of the axes";
  let description = [{
    ```mlir
    %1 = sharding.all_reduce %0 over ["tp"] : tensor<8x64xf32>
    %2 = sharding.all_reduce max %0 over ["tp"] : tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value, StrArrayAttr:$axes,
                       DefaultValuedAttr<Sharding_ReduceKind,
                           "::accel::sharding::ReduceKind::Sum">:$kind);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "($kind^)? $value `over` $axes attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Sharding_AllGatherOp : Sharding_DimOp<"all_gather"> {
  let summary = "the whole of a dimension from the ranks' parts";
  let description = [{
    With `pieces`, the parts of each piece are gathered side by side, in every
    second one of `mirrored` pieces from the last rank to the first.

    ```mlir
    %1 = sharding.all_gather %0 dim 1 over "tp" : (tensor<8x32xf32>) -> tensor<8x64xf32>
    %2 = sharding.all_gather %0 dim 1 over "cp" pieces 2 mirrored : (tensor<1x8xi64>) -> tensor<1x16xi64>
    ```
  }];
}

def Sharding_ReduceScatterOp : Sharding_DimOp<"reduce_scatter"> {
  let summary = "each rank's part of the sum over the ranks";
  let description = [{
    ```mlir
    %1 = sharding.reduce_scatter %0 dim 0 over "tp" : (tensor<8x64xf32>) -> tensor<4x64xf32>
    ```
  }];
}

def Sharding_SliceOp : Sharding_DimOp<"slice"> {
  let summary = "this rank's part of a dimension that it has whole";
  let description = [{
    ```mlir
    %1 = sharding.slice %0 dim 1 over "tp" pieces 3 : (tensor<8x96xf32>) -> tensor<8x48xf32>
    ```
  }];
}

def Sharding_AllToAllOp : Sharding_Op<"all_to_all", [Pure]> {
  let summary = "the parts of one dimension for the parts of another";
  let description = [{
    Each rank has a part of dimension `concat` and all of dimension `split`;
    afterwards it has all of `concat` and a part of `split`.

    ```mlir
    %1 = sharding.all_to_all %0 split 2 concat 1 over "cp" : (tensor<1x8x4x16xf32>) -> tensor<1x16x2x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value, I64Attr:$split, I64Attr:$concat,
                       StrAttr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $value `split` $split `concat` $concat `over` $axis attr-dict `:`
    functional-type($value, $result)
  }];
  let hasVerifier = 1;
}

def Sharding_PermuteOp
    : Sharding_Op<"permute", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "the value of the rank that stands `shift` before this one";
  let description = [{
    Each rank sends its value to the rank `shift` behind it on the axis, the
    last ones to the first.

    ```mlir
    %1 = sharding.permute %0 by 1 over "cp" : tensor<1x4x8x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value, I64Attr:$shift, StrAttr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$value `by` $shift `over` $axis attr-dict `:` type($value)";
  let hasVerifier = 1;
}

/// Of rows that are sorted by expert and the ranks' ends of each expert's rows
/// among their own, [ranks, experts], which are equally many a rank: rank i has
/// the i-th experts. Ranks are counted over all axes, the first one outermost.
class Sharding_ExpertOp<string mnemonic> : Sharding_Op<mnemonic, [Pure]> {
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
}

def Sharding_ExpertEndsOp : Sharding_ExpertOp<"expert_ends"> {
  let summary = "where the rows of each of this rank's experts end";
  let description = [{
    Among the rows that the ranks send it, which are sorted by expert and then
    by rank. More than `rows` of them end the run, on every rank of the axes.

    ```mlir
    %1 = sharding.expert_ends %0 rows 64 over ["ep"] : (tensor<2x8xi32>) -> tensor<4xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$ends, I64Attr:$rows,
                       StrArrayAttr:$axes);
  let assemblyFormat = [{
    $ends `rows` $rows `over` $axes attr-dict `:`
    functional-type($ends, $result)
  }];
}

def Sharding_DispatchOp : Sharding_ExpertOp<"dispatch"> {
  let summary = "each row to the rank that has its expert";
  let description = [{
    The result has a place for as many rows as the ranks may send; what lies
    behind the last row is not defined, and must not be read. `combine` is its
    inverse, and its adjoint.

    ```mlir
    %1 = sharding.dispatch %0, %ends over ["ep"] : (tensor<32x16xf32>, tensor<2x8xi32>) -> tensor<64x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value, AnyRankedTensor:$ends,
                       StrArrayAttr:$axes);
  let assemblyFormat = [{
    $value `,` $ends `over` $axes attr-dict `:`
    functional-type(operands, $result)
  }];
}

def Sharding_CombineOp : Sharding_ExpertOp<"combine"> {
  let summary = "each row back to the rank that it came from";
  let description = [{
    What `dispatch` sent returns to its place.

    ```mlir
    %1 = sharding.combine %0, %ends over ["ep"] : (tensor<64x16xf32>, tensor<2x8xi32>) -> tensor<32x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value, AnyRankedTensor:$ends,
                       StrArrayAttr:$axes);
  let assemblyFormat = [{
    $value `,` $ends `over` $axes attr-dict `:`
    functional-type(operands, $result)
  }];
}

def Sharding_FirstRankOp
    : Sharding_Op<"first_rank", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "the value on the first rank of the axes, zeros on the others";
  let description = [{
    What is added once to a sum that is reduced later, such as a bias.

    ```mlir
    %1 = sharding.first_rank %0 over ["tp"] : tensor<64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value, StrArrayAttr:$axes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `over` $axes attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Sharding_CoordinateOp : Sharding_Op<"coordinate", [Pure]> {
  let summary = "where this rank stands on an axis, counted in steps";
  let description = [{
    A 0-d tensor: the rank's coordinate times `step`, the first row of a rank
    that has `step` rows.

    ```mlir
    %0 = sharding.coordinate "tp" step 16000 : tensor<i64>
    ```
  }];
  let arguments = (ins StrAttr:$axis, DefaultValuedAttr<I64Attr, "1">:$step);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$axis (`step` $step^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // ACCEL_DIALECTS_SHARDING_COLLECTIVEOPS_TD
