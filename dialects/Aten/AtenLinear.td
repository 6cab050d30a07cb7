//===- AtenLinear.td - Matmuls, reductions, tables --------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_LINEAR_TD
#define ACCEL_DIALECTS_ATEN_LINEAR_TD

include "dialects/Aten/AtenBase.td"

def Aten_MmOp : Aten_Op<"mm", "aten::mm(%0, %1)", "Matmul",
                        [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost]> {
  let summary = "matmul";
  let description = [{
    ```mlir
    %0 = aten.mm %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$mat2);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $self `,` $mat2 attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_AddmmOp
    : Aten_Op<"addmm", "aten::addmm(%0, %1, %2, 1, 1)", "Matmul",
              [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost]> {
  let summary = "bias + matmul";
  let description = [{
    A linear layer with bias; its input is flattened to a matrix first.

    ```mlir
    %0 = aten.addmm %bias, %a, %b : (tensor<4xf32>, tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$mat1,
                       Aten_FloatTensor:$mat2);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $self `,` $mat1 `,` $mat2 attr-dict `:` functional-type(operands, results)
  }];
}

class Aten_Reduction<string mnemonic, string what, Type type,
                     list<Trait> traits = []>
    : Aten_Op<mnemonic, "aten::" # mnemonic # "(%0, $dim, $keepdim, none)",
              "Reduction",
              !listconcat([InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost],
                          traits)> {
  let summary = what # " over dimensions";
  let description = [{
    Dimensions count from 0; with `keepdim` they stay with size 1. Integers and
    truth values are summed in 64 bits.

    ```mlir
    %0 = aten.}] # mnemonic # [{ %x, [1], true : (tensor<2x8xf32>) -> tensor<2x1xf32>
    ```
  }];
  let arguments = (ins type:$self, DenseI64ArrayAttr:$dim, BoolAttr:$keepdim);
  let results = (outs type:$result);
  let assemblyFormat = [{
    $self `,` $dim `,` $keepdim attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_SumDimOp : Aten_Reduction<"sum.dim_IntList", "sum", Aten_Tensor>;
def Aten_MeanDimOp : Aten_Reduction<"mean.dim", "mean", Aten_FloatTensor, [Aten_OwnWorkspace]>;

def Aten_EmbeddingOp
    : Aten_Op<"embedding", "aten::embedding(%0, %1, $padding_idx, false, false)",
              "Memory", [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost]> {
  let summary = "rows of an embedding weight";
  let description = [{
    The row `padding_idx` (-1: none) gets no gradient.

    ```mlir
    %0 = aten.embedding %table, %ids : (tensor<100x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$weight, Aten_IntTensor:$indices,
                       DefaultValuedAttr<I64Attr, "-1">:$padding_idx);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $weight `,` $indices attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_EmbeddingDenseBackwardOp
    : Aten_Op<"embedding_dense_backward",
              "aten::embedding_dense_backward(%0, %1, $num_weights, $padding_idx, false)",
              "Memory", [InferTypeOpAdaptor]> {
  let summary = "gradient of an embedding's weight";
  let description = [{
    ```mlir
    %0 = aten.embedding_dense_backward %grad, %ids {num_weights = 100 : i64} : (tensor<2x4x8xf32>, tensor<2x4xi64>) -> tensor<100x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_IntTensor:$indices,
                       I64Attr:$num_weights,
                       DefaultValuedAttr<I64Attr, "-1">:$padding_idx);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $grad_output `,` $indices attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_CatOp : Aten_Op<"cat", "aten::cat(%0*, $dim)", "Memory",
                         [InferTypeOpAdaptor, Aten_Derivative]> {
  let summary = "tensors one after another";
  let description = [{
    ```mlir
    %0 = aten.cat %a, %b dim 1 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x16xf32>
    ```
  }];
  let arguments = (ins Variadic<Aten_Tensor>:$tensors, I64Attr:$dim);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $tensors `dim` $dim attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_SliceBackwardOp
    : Aten_Op<"slice_backward",
              "aten::slice_backward(%0, $input_sizes, $dim, $start, $end, $step)",
              "Memory", [InferTypeOpAdaptor]> {
  let summary = "gradient of a slice: zeros around it";
  let description = [{
    ```mlir
    %0 = aten.slice_backward %g, [8, 64], 1 [0 : 32 : 1] : (tensor<8x32xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output,
                       DenseI64ArrayAttr:$input_sizes, I64Attr:$dim,
                       I64Attr:$start, I64Attr:$end,
                       DefaultValuedAttr<I64Attr, "1">:$step);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $grad_output `,` $input_sizes `,` $dim `[` $start `:` $end `:` $step `]`
    attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_ArangeOp
    : Aten_Op<"arange.start_step",
              "aten::arange.start_step($start, $end, $step, $dtype, none, none, none)",
              "Memory", [InferTypeOpAdaptor]> {
  let summary = "start, start + step, ... below end";
  let description = [{
    ```mlir
    %0 = aten.arange.start_step [0 : 64 : 2], i64 : tensor<32xi64>
    ```
  }];
  let arguments = (ins I64Attr:$start, I64Attr:$end,
                       DefaultValuedAttr<I64Attr, "1">:$step, TypeAttr:$dtype);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    `[` $start `:` $end `:` $step `]` `,` $dtype attr-dict `:` type($result)
  }];
}

#endif // ACCEL_DIALECTS_ATEN_LINEAR_TD
