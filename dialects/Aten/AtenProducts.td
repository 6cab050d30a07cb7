//===- AtenProducts.td - Matmuls of batches and vectors ---*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_PRODUCTS_TD
#define ACCEL_DIALECTS_ATEN_PRODUCTS_TD

include "dialects/Aten/AtenBase.td"

def Aten_BmmOp
    : Aten_Plain<"bmm", "aten::bmm(%0, %1)", "Matmul",
                 "matmuls, one for each of a batch",
                 [Aten_Derivative, Aten_OwnCost]> {
  let description = [{
    ```mlir
    %0 = aten.bmm %a, %b : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$mat2);
  let results = (outs Aten_FloatTensor:$result);
}

def Aten_BaddbmmOp
    : Aten_Plain<"baddbmm", "aten::baddbmm(%0, %1, %2, $beta, $alpha)", "Matmul",
                 "beta * x + alpha * matmuls",
                 [Aten_Derivative, Aten_OwnCost]> {
  let description = [{
    x broadcasts to the matmuls.

    ```mlir
    %0 = aten.baddbmm %x, %a, %b {beta = 1.0 : f64, alpha = 0.125 : f64} : (tensor<5x1x4xf32>, tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$batch1,
                       Aten_FloatTensor:$batch2, F64Attr:$beta, F64Attr:$alpha);
  let results = (outs Aten_FloatTensor:$result);
}

def Aten_MvOp
    : Aten_Plain<"mv", "aten::mv(%0, %1)", "Matmul", "a matrix times a vector",
                 [Aten_Derivative, Aten_OwnCost]> {
  let description = [{
    ```mlir
    %0 = aten.mv %a, %v : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$vec);
  let results = (outs Aten_FloatTensor:$result);
}

def Aten_DotOp
    : Aten_Plain<"dot", "aten::dot(%0, %1)", "Matmul", "a vector times a vector",
                 [Aten_Derivative, Aten_OwnCost]> {
  let description = [{
    ```mlir
    %0 = aten.dot %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$tensor);
  let results = (outs Aten_FloatTensor:$result);
}

#endif // ACCEL_DIALECTS_ATEN_PRODUCTS_TD
