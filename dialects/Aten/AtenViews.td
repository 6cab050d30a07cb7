//===- AtenViews.td - Operators that share storage ---------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_VIEWS_TD
#define ACCEL_DIALECTS_ATEN_VIEWS_TD

include "dialects/Aten/AtenBase.td"

class Aten_View<string mnemonic, string aten>
    : Aten_Op<mnemonic, aten, "View", [InferTypeOpAdaptor, Aten_Derivative]> {
  let results = (outs Aten_Tensor:$result);
}

def Aten_TOp : Aten_View<"t", "aten::t(%0)"> {
  let summary = "transposes a matrix";
  let description = [{
    ```mlir
    %0 = aten.t %w : (tensor<3x2xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self);
  let assemblyFormat = "$self attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Aten_TransposeIntOp
    : Aten_View<"transpose.int", "aten::transpose.int(%0, $dim0, $dim1)"> {
  let summary = "swaps two dimensions";
  let description = [{
    Dimensions count from 0.

    ```mlir
    %0 = aten.transpose.int %x, 1, 2 : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim0, I64Attr:$dim1);
  let assemblyFormat = [{
    $self `,` $dim0 `,` $dim1 attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_PermuteOp : Aten_View<"permute", "aten::permute(%0, $dims)"> {
  let summary = "reorders dimensions";
  let description = [{
    ```mlir
    %0 = aten.permute %x, [1, 0, 2] : (tensor<2x8x4xf32>) -> tensor<8x2x4xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dims);
  let assemblyFormat = [{
    $self `,` $dims attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_ViewOp : Aten_View<"view", "aten::view(%0, $size)"> {
  let summary = "another shape of the same storage";
  let description = [{
    `size` has no -1. The exporter proves that the strides of `self` allow it.

    ```mlir
    %0 = aten.view %x, [16, 64] : (tensor<2x8x64xf32>) -> tensor<16x64xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$size);
  let assemblyFormat = [{
    $self `,` $size attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def Aten_ExpandOp : Aten_View<"expand", "aten::expand(%0, $size, false)"> {
  let summary = "broadcasts by strides of zero";
  let description = [{
    `size` has no -1; leading dimensions are new.

    ```mlir
    %0 = aten.expand %x, [2, 8, 64] : (tensor<2x8x1xf32>) -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$size);
  let assemblyFormat = [{
    $self `,` $size attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_UnsqueezeOp : Aten_View<"unsqueeze", "aten::unsqueeze(%0, $dim)"> {
  let summary = "inserts a dimension of size 1 before `dim`";
  let description = [{
    ```mlir
    %0 = aten.unsqueeze %x, 1 : (tensor<8x64xf32>) -> tensor<8x1x64xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim);
  let assemblyFormat = [{
    $self `,` $dim attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_SqueezeDimOp : Aten_View<"squeeze.dim", "aten::squeeze.dim(%0, $dim)"> {
  let summary = "removes a dimension of size 1";
  let description = [{
    ```mlir
    %0 = aten.squeeze.dim %x, 1 : (tensor<8x1x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim);
  let assemblyFormat = [{
    $self `,` $dim attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_SliceTensorOp
    : Aten_View<"slice.Tensor", "aten::slice.Tensor(%0, $dim, $start, $end, $step)"> {
  let summary = "elements [start, end) of a dimension, every `step`-th";
  let description = [{
    `0 <= start <= end <= size`, `step >= 1`.

    ```mlir
    %0 = aten.slice.Tensor %x, 1 [0 : 32 : 1] : (tensor<8x64xf32>) -> tensor<8x32xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim, I64Attr:$start,
                       I64Attr:$end, DefaultValuedAttr<I64Attr, "1">:$step);
  let assemblyFormat = [{
    $self `,` $dim `[` $start `:` $end `:` $step `]` attr-dict `:`
    functional-type(operands, results)
  }];
}

#endif // ACCEL_DIALECTS_ATEN_VIEWS_TD
