//===- AtenIndex.td - Elements by position -----------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_INDEX_TD
#define ACCEL_DIALECTS_ATEN_INDEX_TD

include "dialects/Aten/AtenViews.td"

//===----------------------------------------------------------------------===//
// Positions known here
//===----------------------------------------------------------------------===//

def Aten_SelectIntOp
    : Aten_Plain<"select.int", "aten::select.int(%0, $dim, $index)", "View",
                 "one position of a dimension, which goes",
                 [Aten_Derivative, Aten_OwnStrides]> {
  let description = [{
    ```mlir
    %0 = aten.select.int %x {dim = 1 : i64, index = 0 : i64} : (tensor<2x8x4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim, I64Attr:$index);
  let results = (outs Aten_Tensor:$result);
}

def Aten_SelectBackwardOp
    : Aten_Plain<"select_backward",
                 "aten::select_backward(%0, $input_sizes, $dim, $index)", "Memory",
                 "gradient of a selection: zeros around it"> {
  let description = [{
    ```mlir
    %0 = aten.select_backward %g {input_sizes = array<i64: 2, 8, 4>, dim = 1 : i64, index = 0 : i64} : (tensor<2x4xf32>) -> tensor<2x8x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output,
                       DenseI64ArrayAttr:$input_sizes, I64Attr:$dim,
                       I64Attr:$index);
  let results = (outs Aten_FloatTensor:$result);
}

def Aten_ConstantPadNdOp
    : Aten_Plain<"constant_pad_nd", "aten::constant_pad_nd(%0, $pad, $value)",
                 "Memory", "a border of one number; negative sizes cut",
                 [Aten_Derivative, Aten_OwnStrides]> {
  let description = [{
    `pad` holds the sizes before and behind, the last dimension first.

    ```mlir
    %0 = aten.constant_pad_nd %x {pad = array<i64: 1, 2>, value = 0.0 : f64} : (tensor<2x8xf32>) -> tensor<2x11xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$pad,
                       Aten_Scalar:$value);
  let results = (outs Aten_Tensor:$result);
}

def Aten_FlipOp
    : Aten_Plain<"flip", "aten::flip(%0, $dims)", "Memory",
                 "dimensions backwards", [Aten_Derivative, Aten_OwnStrides]> {
  let description = [{
    ```mlir
    %0 = aten.flip %x {dims = array<i64: 1>} : (tensor<2x8xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dims);
  let results = (outs Aten_Tensor:$result);
}

class Aten_Triangle<string mnemonic, string what>
    : Aten_Plain<mnemonic, "aten::" # mnemonic # "(%0, $diagonal)", "Memory",
                 what, [Aten_Derivative]> {
  let description = [{
    ```mlir
    %0 = aten.}] # mnemonic # [{ %x {diagonal = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$diagonal);
  let results = (outs Aten_Tensor:$result);
}
def Aten_TrilOp : Aten_Triangle<"tril", "matrices up to a diagonal, then 0">;
def Aten_TriuOp : Aten_Triangle<"triu", "matrices from a diagonal on, 0 before">;

def Aten_RollOp
    : Aten_Plain<"roll", "aten::roll(%0, $shifts, $dims)", "Memory",
                 "dimensions moved around", [Aten_Derivative]> {
  let description = [{
    ```mlir
    %0 = aten.roll %x {shifts = array<i64: 1>, dims = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$shifts,
                       DenseI64ArrayAttr:$dims);
  let results = (outs Aten_Tensor:$result);
}

def Aten_RepeatOp
    : Aten_Plain<"repeat", "aten::repeat(%0, $repeats)", "Memory",
                 "copies side by side", [Aten_Derivative]> {
  let description = [{
    ```mlir
    %0 = aten.repeat %x {repeats = array<i64: 2, 1>} : (tensor<8x4xf32>) -> tensor<16x4xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$repeats);
  let results = (outs Aten_Tensor:$result);
}

def Aten_SliceScatterOp
    : Aten_Plain<"slice_scatter",
                 "aten::slice_scatter(%0, %1, $dim, $start, $end, $step)",
                 "Memory", "another tensor in the place of a slice",
                 [Aten_Derivative, Aten_OwnStrides]> {
  let description = [{
    ```mlir
    %0 = aten.slice_scatter %x, %s {dim = 0 : i64, start = 1 : i64, end = 3 : i64, step = 1 : i64} : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$src, I64Attr:$dim,
                       I64Attr:$start, I64Attr:$end, I64Attr:$step);
  let results = (outs Aten_Tensor:$result);
}

def Aten_SelectScatterOp
    : Aten_Plain<"select_scatter",
                 "aten::select_scatter(%0, %1, $dim, $index)", "Memory",
                 "another tensor in the place of a selection",
                 [Aten_Derivative, Aten_OwnStrides]> {
  let description = [{
    ```mlir
    %0 = aten.select_scatter %x, %s {dim = 0 : i64, index = 1 : i64} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$src, I64Attr:$dim,
                       I64Attr:$index);
  let results = (outs Aten_Tensor:$result);
}

//===----------------------------------------------------------------------===//
// Positions in tensors
//===----------------------------------------------------------------------===//

def Aten_IndexSelectOp
    : Aten_Plain<"index_select", "aten::index_select(%0, $dim, %1)", "Memory",
                 "the listed positions of a dimension", [Aten_Derivative]> {
  let description = [{
    ```mlir
    %0 = aten.index_select %x, %i {dim = 1 : i64} : (tensor<2x8xf32>, tensor<3xi64>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_IntTensor:$index, I64Attr:$dim);
  let results = (outs Aten_Tensor:$result);
}

def Aten_IndexAddOp
    : Aten_Plain<"index_add", "aten::index_add(%0, $dim, %1, %2, 1)", "Memory",
                 "adds to the listed positions of a dimension",
                 [Aten_Derivative]> {
  let description = [{
    ```mlir
    %0 = aten.index_add %x, %i, %s {dim = 1 : i64} : (tensor<2x8xf32>, tensor<3xi64>, tensor<2x3xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_IntTensor:$index,
                       Aten_Tensor:$source, I64Attr:$dim);
  let results = (outs Aten_Tensor:$result);
}

def Aten_GatherOp
    : Aten_Plain<"gather", "aten::gather(%0, $dim, %1, false)", "Memory",
                 "for each element of `index`, that position of a dimension",
                 [Aten_Derivative]> {
  let description = [{
    ```mlir
    %0 = aten.gather %x, %i {dim = 1 : i64} : (tensor<2x8xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_IntTensor:$index, I64Attr:$dim);
  let results = (outs Aten_Tensor:$result);
}

class Aten_Scatter<string mnemonic, string aten, string what>
    : Aten_Plain<mnemonic, aten, "Memory", what, [Aten_Derivative]> {
  let description = [{
    ```mlir
    %0 = aten.scatter_add %x, %i, %s {dim = 1 : i64} : (tensor<2x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_IntTensor:$index,
                       Aten_Tensor:$src, I64Attr:$dim);
  let results = (outs Aten_Tensor:$result);
}
def Aten_ScatterSrcOp
    : Aten_Scatter<"scatter.src", "aten::scatter.src(%0, $dim, %1, %2)",
                   "writes elements to positions of a dimension">;
def Aten_ScatterAddOp
    : Aten_Scatter<"scatter_add", "aten::scatter_add(%0, $dim, %1, %2)",
                   "adds elements to positions of a dimension">;
def Aten_ScatterValueOp
    : Aten_Plain<"scatter.value", "aten::scatter.value(%0, $dim, %1, $value)",
                 "Memory", "writes a number to positions of a dimension",
                 [Aten_Derivative]> {
  let description = [{
    ```mlir
    %0 = aten.scatter.value %x, %i {dim = 1 : i64, value = 0.0 : f64} : (tensor<2x8xf32>, tensor<2x3xi64>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_IntTensor:$index, I64Attr:$dim,
                       Aten_Scalar:$value);
  let results = (outs Aten_Tensor:$result);
}

def Aten_IndexTensorOp
    : Aten_Plain<"index.Tensor", "aten::index.Tensor(%0, %1*dims)", "Memory",
                 "elements at positions in several dimensions",
                 [Aten_Derivative, Aten_OwnStrides]> {
  let description = [{
    Operand 1 + i indexes dimension `dims[i]` (they rise). The indices broadcast
    to one shape, which takes the place of their dimensions, or comes first where
    these are not neighbours. Truth values are no indices here: the result's size
    would depend on them.

    ```mlir
    %0 = aten.index.Tensor %x, %i {dims = array<i64: 0>} : (tensor<8x4xf32>, tensor<3x5xi64>) -> tensor<3x5x4xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Variadic<Aten_IntTensor>:$indices,
                       DenseI64ArrayAttr:$dims);
  let results = (outs Aten_Tensor:$result);
}

def Aten_IndexPutOp
    : Aten_Plain<"index_put", "aten::index_put(%0, %2*dims, %1, $accumulate)",
                 "Memory", "writes, or adds, at positions in several dimensions",
                 [Aten_Derivative, Aten_OwnStrides]> {
  let description = [{
    The operands are x, the values, and the indices as for `index.Tensor`. The
    values broadcast to what `index.Tensor` would return.

    ```mlir
    %0 = aten.index_put %x, %v, %i {dims = array<i64: 0>, accumulate = true} : (tensor<8x4xf32>, tensor<3x4xf32>, tensor<3xi64>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$values,
                       Variadic<Aten_IntTensor>:$indices,
                       DenseI64ArrayAttr:$dims, BoolAttr:$accumulate);
  let results = (outs Aten_Tensor:$result);
}

#endif // ACCEL_DIALECTS_ATEN_INDEX_TD
