//===- AtenReduce.td - Reductions beyond sum and mean ------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_REDUCE_TD
#define ACCEL_DIALECTS_ATEN_REDUCE_TD

include "dialects/Aten/AtenBase.td"

def Aten_SoftmaxOp
    : Aten_Op<"_softmax", "aten::_softmax(%0, $dim, false)", "Reduction",
              [SameOperandsAndResultType, Aten_Derivative, Aten_OwnCost]> {
  let summary = "exp(x) / sum(exp(x)) along a dimension";
  let description = [{
    ```mlir
    %0 = aten._softmax %x, 1 : tensor<8x100xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, I64Attr:$dim);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = "$self `,` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Aten_SoftmaxBackwardDataOp
    : Aten_Op<"_softmax_backward_data",
              "aten::_softmax_backward_data(%0, %1, $dim, $input_dtype)",
              "Reduction",
              [SameOperandsAndResultType, Aten_OwnCost, Aten_OwnWorkspace]> {
  let summary = "gradient of _softmax, from its output";
  let description = [{
    ```mlir
    %0 = aten._softmax_backward_data %grad, %out, 1, f32 : tensor<8x100xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$output,
                       I64Attr:$dim, TypeAttr:$input_dtype);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $grad_output `,` $output `,` $dim `,` $input_dtype attr-dict `:`
    type($result)
  }];
}

/// A reduction of any element type over several dimensions.
class Aten_ReduceDims<string mnemonic, string aten, string what,
                      list<Trait> traits = []>
    : Aten_Plain<mnemonic, aten, "Reduction", what,
                 !listconcat([Aten_OwnCost], traits)> {
  let description = [{
    Dimensions count from 0; with `keepdim` they stay with size 1.

    ```mlir
    %0 = aten.}] # mnemonic # [{ %x {dim = array<i64: 1>, keepdim = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dim,
                       BoolAttr:$keepdim);
  let results = (outs Aten_Tensor:$result);
}

def Aten_AmaxOp : Aten_ReduceDims<"amax", "aten::amax(%0, $dim, $keepdim)",
                                  "the largest element", [Aten_Derivative]>;
def Aten_AminOp : Aten_ReduceDims<"amin", "aten::amin(%0, $dim, $keepdim)",
                                  "the smallest element", [Aten_Derivative]>;
def Aten_AnyDimsOp
    : Aten_ReduceDims<"any.dims", "aten::any.dims(%0, $dim, $keepdim)",
                      "whether any element is not 0", [Aten_OwnWorkspace]>;
def Aten_AllDimsOp
    : Aten_ReduceDims<"all.dims", "aten::all.dims(%0, $dim, $keepdim)",
                      "whether no element is 0", [Aten_OwnWorkspace]>;

def Aten_CumsumOp
    : Aten_Plain<"cumsum", "aten::cumsum(%0, $dim, none)", "Reduction",
                 "sums of the elements so far", [Aten_Derivative]> {
  let description = [{
    Integers and truth values are summed in 64 bits.

    ```mlir
    %0 = aten.cumsum %x {dim = 1 : i64} : (tensor<2x8xi1>) -> tensor<2x8xi64>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim);
  let results = (outs Aten_Tensor:$result);
}

def Aten_ProdDimIntOp
    : Aten_Plain<"prod.dim_int", "aten::prod.dim_int(%0, $dim, $keepdim, none)",
                 "Reduction", "the product along a dimension",
                 [Aten_Derivative, Aten_OwnCost]> {
  let description = [{
    Integers and truth values are multiplied in 64 bits.

    ```mlir
    %0 = aten.prod.dim_int %x {dim = 1 : i64, keepdim = false} : (tensor<2x8xf32>) -> tensor<2xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim, BoolAttr:$keepdim);
  let results = (outs Aten_Tensor:$result);
}

def Aten_LinalgVectorNormOp
    : Aten_Plain<"linalg_vector_norm",
                 "aten::linalg_vector_norm(%0, $ord, $dim, $keepdim, none)",
                 "Reduction", "sum(|x|^ord)^(1 / ord) over dimensions",
                 [Aten_Derivative, Aten_OwnCost]> {
  let description = [{
    With `ord` infinite the largest or the smallest |x|, with 0 how many elements
    are not 0.

    ```mlir
    %0 = aten.linalg_vector_norm %x {ord = 2.0 : f64, dim = array<i64: 1>, keepdim = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, F64Attr:$ord,
                       DenseI64ArrayAttr:$dim, BoolAttr:$keepdim);
  let results = (outs Aten_FloatTensor:$result);
}

def Aten_VarCorrectionOp
    : Aten_Plain<"var.correction",
                 "aten::var.correction(%0, $dim, $correction, $keepdim)",
                 "Reduction", "variance over dimensions",
                 [Aten_Derivative, Aten_OwnCost]> {
  let description = [{
    The sum of squares is divided by the number of elements less `correction`.

    ```mlir
    %0 = aten.var.correction %x {dim = array<i64: 1>, correction = 1.0 : f64, keepdim = true} : (tensor<2x8xf32>) -> tensor<2x1xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, DenseI64ArrayAttr:$dim,
                       F64Attr:$correction, BoolAttr:$keepdim);
  let results = (outs Aten_FloatTensor:$result);
}

def Aten_LogsumexpOp
    : Aten_Plain<"logsumexp", "aten::logsumexp(%0, $dim, $keepdim)",
                 "Reduction", "log(sum(exp(x))) over dimensions",
                 [Aten_Derivative, Aten_OwnCost]> {
  let description = [{
    ```mlir
    %0 = aten.logsumexp %x {dim = array<i64: 1>, keepdim = false} : (tensor<2x8xf32>) -> tensor<2xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, DenseI64ArrayAttr:$dim,
                       BoolAttr:$keepdim);
  let results = (outs Aten_FloatTensor:$result);
}

/// Of one dimension; where the element was comes with it, or alone.
class Aten_Extreme<string mnemonic, string what, list<Trait> traits,
                   dag outs_>
    : Aten_Plain<mnemonic, "aten::" # mnemonic # "(%0, $dim, $keepdim)",
                 "Reduction", what, !listconcat([Aten_OwnCost], traits)> {
  let description = [{
    ```mlir
    %0 = aten.argmax %x {dim = 1 : i64, keepdim = false} : (tensor<2x8xf32>) -> tensor<2xi64>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim, BoolAttr:$keepdim);
  let results = outs_;
}
def Aten_MaxDimOp
    : Aten_Extreme<"max.dim", "the largest element of a dimension, and where",
                   [Aten_Derivative],
                   (outs Aten_Tensor:$values, Aten_Tensor:$indices)>;
def Aten_MinDimOp
    : Aten_Extreme<"min.dim", "the smallest element of a dimension, and where",
                   [Aten_Derivative],
                   (outs Aten_Tensor:$values, Aten_Tensor:$indices)>;
def Aten_ArgmaxOp : Aten_Extreme<"argmax", "where the largest element is", [],
                                 (outs Aten_Tensor:$result)>;
def Aten_ArgminOp : Aten_Extreme<"argmin", "where the smallest element is", [],
                                 (outs Aten_Tensor:$result)>;

#endif // ACCEL_DIALECTS_ATEN_REDUCE_TD
