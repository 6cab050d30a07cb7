//===- AtenRouting.td - Mixtures of experts ----------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What a router and its experts need so that shapes stay static: the T tokens'
// k choices are T*k rows, sorted by expert, and each expert's rows are found by
// offsets into them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_ROUTING_TD
#define ACCEL_DIALECTS_ATEN_ROUTING_TD

include "dialects/Aten/AtenBase.td"

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

def Aten_TopkOp
    : Aten_Op<"topk", "aten::topk(%0, $k, $dim, true, true)", "Reduction",
              [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost]> {
  let summary = "the k largest of a dimension and their positions, in order";
  let description = [{
    ```mlir
    %v, %i = aten.topk %x, 2, 1 : (tensor<16x8xf32>) -> (tensor<16x2xf32>, tensor<16x2xi64>)
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$k, I64Attr:$dim);
  let results = (outs Aten_Tensor:$values, Aten_IntTensor:$indices);
  let assemblyFormat = [{
    $self `,` $k `,` $dim attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_ValueSelectingReductionBackwardOp
    : Aten_Op<"value_selecting_reduction_backward",
              "aten::value_selecting_reduction_backward(%0, $dim, %1, $sizes, true)",
              "Memory", [InferTypeOpAdaptor]> {
  let summary = "gradient of picked values: zeros around them";
  let description = [{
    ```mlir
    %0 = aten.value_selecting_reduction_backward %g, %i, 1, [16, 8] : (tensor<16x2xf32>, tensor<16x2xi64>) -> tensor<16x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$grad, Aten_IntTensor:$indices,
                       I64Attr:$dim, DenseI64ArrayAttr:$sizes);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $grad `,` $indices `,` $dim `,` $sizes attr-dict `:`
    functional-type(operands, results)
  }];
}

def Aten_SortStableOp
    : Aten_Op<"sort.stable", "aten::sort.stable(%0, true, $dim, $descending)",
              "Reduction",
              [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost,
               Aten_OwnWorkspace]> {
  let summary = "a dimension in order, and where each element was";
  let description = [{
    Equal elements keep their order, on every device.

    ```mlir
    %v, %i = aten.sort.stable %x, 0, false : (tensor<32xi64>) -> (tensor<32xi64>, tensor<32xi64>)
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim, BoolAttr:$descending);
  let results = (outs Aten_Tensor:$values, Aten_IntTensor:$indices);
  let assemblyFormat = [{
    $self `,` $dim `,` $descending attr-dict `:`
    functional-type(operands, results)
  }];
}

def Aten_FloorDivideScalarOp
    : Aten_Op<"floor_divide.Scalar", "aten::floor_divide.Scalar(%0, $other)",
              "Pointwise", [SameOperandsAndResultType, Aten_OwnWorkspace]> {
  let summary = "integers divided, rounded down";
  let description = [{
    ```mlir
    %0 = aten.floor_divide.Scalar %x, 2 : tensor<32xi64>
    ```
  }];
  let arguments = (ins Aten_IntTensor:$self, I64Attr:$other);
  let results = (outs Aten_IntTensor:$result);
  let assemblyFormat = "$self `,` $other attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Aten_SearchsortedTensorOp
    : Aten_Op<"searchsorted.Tensor",
              "aten::searchsorted.Tensor(%0, %1, $out_int32, $right, none, none)",
              "Reduction", [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = "where values belong in a sorted vector";
  let description = [{
    With `right`, how many elements are not greater; else, how many are less.
    The ends of each expert's rows are those of 0, 1, ... among the sorted
    experts of all rows.

    ```mlir
    %0 = aten.searchsorted.Tensor %sorted, %values, true, true : (tensor<32xi64>, tensor<8xi64>) -> tensor<8xi32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$sorted_sequence, Aten_Tensor:$self,
                       BoolAttr:$out_int32, BoolAttr:$right);
  let results = (outs Aten_IntTensor:$result);
  let assemblyFormat = [{
    $sorted_sequence `,` $self `,` $out_int32 `,` $right attr-dict `:`
    functional-type(operands, results)
  }];
}

def Aten_HistcOp
    : Aten_Op<"histc", "aten::histc(%0, $bins, $min, $max)", "Reduction",
              [InferTypeOpAdaptor, Aten_OwnCost, Aten_OwnWorkspace]> {
  let summary = "how many elements lie in each of some equal ranges";
  let description = [{
    Of [min, max], whose last range holds max as well. CPUs have no kernel for
    integers; CUDA's for floating-point numbers is none that
    torch.use_deterministic_algorithms takes.

    ```mlir
    %0 = aten.histc %x, 8 [0 : 8] : (tensor<32xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$bins, I64Attr:$min,
                       I64Attr:$max);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $self `,` $bins `[` $min `:` $max `]` attr-dict `:`
    functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

def Aten_GroupedMmOp
    : Aten_Op<"_grouped_mm", "aten::_grouped_mm(%0, %1, %2, none, none)",
              "Matmul", [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost]> {
  let summary = "a matmul for each group of rows";
  let description = [{
    `offs` holds where each of G groups ends. A matrix [S, K] times [G, K, N]:
    the rows of group g times matrix g, [S, N]. A matrix [M, S] times [S, N]:
    for each group the matmul over its part of S, [G, M, N]; this is the
    gradient of the weights.

    ATen wants, on CPUs and on CUDA, of both operands the last or the next to
    last dimension with a stride of 1 and the other's stride a multiple of 16
    bytes: with row-major operands and weights used as their transposes, K and N
    are multiples of 4 in fp32 and of 8 in 16 bits. `select-kernels` refuses
    others. On CUDA one kernel does all groups in bf16 from compute capability
    8.0; fp16 and fp32 run group by group and wait for `offs` on the host. On
    CPUs groups run one by one; in 16 bits oneDNN takes scratch for them.

    `rows` of S are expected in groups, where S is a bound of them: the rest
    costs nothing. What lies behind the last group is neither read nor written.

    ```mlir
    %0 = aten._grouped_mm %x, %w, %ends : (tensor<32x16xf32>, tensor<8x16x24xf32>, tensor<8xi32>) -> tensor<32x24xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$mat2,
                       StaticShapeTensorOf<[I32]>:$offs,
                       OptionalAttr<I64Attr>:$rows);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $self `,` $mat2 `,` $offs (`rows` $rows^)? attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // ACCEL_DIALECTS_ATEN_ROUTING_TD
