//===- AtenCompare.td - Comparisons and logic --------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_COMPARE_TD
#define ACCEL_DIALECTS_ATEN_COMPARE_TD

include "dialects/Aten/AtenPointwise.td"

/// Two tensors, which broadcast, and truth values.
class Aten_Comparison<string mnemonic, string formula>
    : Aten_Binary<mnemonic, "(%0, %1)", formula, [Aten_OwnWorkspace]>;

def Aten_EqTensorOp : Aten_Comparison<"eq.Tensor", "a == b">;
def Aten_NeTensorOp : Aten_Comparison<"ne.Tensor", "a != b">;
def Aten_GeTensorOp : Aten_Comparison<"ge.Tensor", "a >= b">;
def Aten_LeTensorOp : Aten_Comparison<"le.Tensor", "a <= b">;
def Aten_GtTensorOp : Aten_Comparison<"gt.Tensor", "a > b">;
def Aten_LtTensorOp : Aten_Comparison<"lt.Tensor", "a < b">;

/// A tensor with a number, and truth values.
class Aten_ComparisonWithScalar<string mnemonic, string formula>
    : Aten_WithScalar<mnemonic, "(%0, $other)", formula, [Aten_OwnWorkspace]>;

def Aten_EqScalarOp : Aten_ComparisonWithScalar<"eq.Scalar", "x == c">;
def Aten_NeScalarOp : Aten_ComparisonWithScalar<"ne.Scalar", "x != c">;
def Aten_GeScalarOp : Aten_ComparisonWithScalar<"ge.Scalar", "x >= c">;
def Aten_LeScalarOp : Aten_ComparisonWithScalar<"le.Scalar", "x <= c">;

def Aten_LogicalOrOp
    : Aten_Binary<"logical_or", "(%0, %1)", "a or b", [Aten_OwnWorkspace]>;
def Aten_LogicalXorOp
    : Aten_Binary<"logical_xor", "(%0, %1)", "a or b, not both",
                  [Aten_OwnWorkspace]>;
def Aten_BitwiseOrTensorOp
    : Aten_Binary<"bitwise_or.Tensor", "(%0, %1)", "a or b, of bits", []>;
def Aten_BitwiseXorTensorOp
    : Aten_Binary<"bitwise_xor.Tensor", "(%0, %1)", "a xor b, of bits", []>;

/// A question about each element.
class Aten_Predicate<string mnemonic, string what, list<Trait> traits = []>
    : Aten_Plain<mnemonic, "aten::" # mnemonic # "(%0)", "Pointwise", what,
                 !listconcat([Aten_OwnWorkspace], traits)> {
  let description = [{
    ```mlir
    %0 = aten.}] # mnemonic # [{ %x : (tensor<8xf32>) -> tensor<8xi1>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self);
  let results = (outs Aten_BoolTensor:$result);
}

def Aten_LogicalNotOp : Aten_Predicate<"logical_not", "x == 0">;
def Aten_IsnanOp : Aten_Predicate<"isnan", "x is not a number">;
def Aten_IsinfOp : Aten_Predicate<"isinf", "x is infinite">;

#endif // ACCEL_DIALECTS_ATEN_COMPARE_TD
