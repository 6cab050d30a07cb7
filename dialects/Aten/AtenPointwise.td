//===- AtenPointwise.td - Element by element ---------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_POINTWISE_TD
#define ACCEL_DIALECTS_ATEN_POINTWISE_TD

include "dialects/Aten/AtenBase.td"

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

class Aten_Unary<string mnemonic, string formula, list<Trait> traits = []>
    : Aten_Op<mnemonic, "aten::" # mnemonic # "(%0)", "Pointwise",
              !listconcat([SameOperandsAndResultType, Aten_Derivative], traits)> {
  let summary = formula;
  let description = [{
    ```mlir
    %0 = aten.}] # mnemonic # [{ %x : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = "$self attr-dict `:` type($result)";
}

def Aten_NegOp : Aten_Unary<"neg", "-x">;
def Aten_CosOp : Aten_Unary<"cos", "cos(x)">;
def Aten_SinOp : Aten_Unary<"sin", "sin(x)">;
def Aten_ExpOp : Aten_Unary<"exp", "exp(x)">;
def Aten_SqrtOp : Aten_Unary<"sqrt", "sqrt(x)">;
def Aten_RsqrtOp : Aten_Unary<"rsqrt", "1 / sqrt(x)">;
def Aten_ReciprocalOp : Aten_Unary<"reciprocal", "1 / x">;
def Aten_SiluOp : Aten_Unary<"silu", "x * sigmoid(x)">;

def Aten_BitwiseNotOp
    : Aten_Op<"bitwise_not", "aten::bitwise_not(%0)", "Pointwise",
              [SameOperandsAndResultType]> {
  let summary = "not x, of truth values or of bits";
  let description = [{
    ```mlir
    %0 = aten.bitwise_not %x : tensor<8xi1>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "$self attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Aten_CloneOp
    : Aten_Op<"clone", "aten::clone(%0, 0)", "Memory",
              [SameOperandsAndResultType, Aten_Derivative]> {
  let summary = "a contiguous copy";
  let description = [{
    `memory_format` is contiguous: what `Tensor.contiguous()` does to a tensor
    that is not.

    ```mlir
    %0 = aten.clone %x : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "$self attr-dict `:` type($result)";
}

def Aten_ZerosLikeOp
    : Aten_Op<"zeros_like", "aten::zeros_like(%0, none, none, none, none, none)",
              "Memory", [SameOperandsAndResultType]> {
  let summary = "zeros of the operand's type";
  let description = [{
    ```mlir
    %0 = aten.zeros_like %x : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "$self attr-dict `:` type($result)";
}

def Aten_ToCopyOp
    : Aten_Op<"_to_copy",
              "aten::_to_copy(%0, $dtype, none, none, none, false, none)",
              "Pointwise", [InferTypeOpAdaptor, Aten_Derivative]> {
  let summary = "casts to another element type";
  let description = [{
    A frontend writes it where the model casts, also where the types agree
    before precision is decided; identities are folded then.

    ```mlir
    %0 = aten._to_copy %x, f32 : (tensor<2x8xbf16>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, TypeAttr:$dtype);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $self `,` $dtype attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def Aten_TypeAsOp
    : Aten_Op<"type_as", "", "Pointwise", [InferTypeOpAdaptor, Aten_Derivative]> {
  let summary = "casts to the element type of another tensor";
  let description = [{
    The precision pass makes an `_to_copy` of it, or nothing.

    ```mlir
    %0 = aten.type_as %x, %like : (tensor<2x8xf32>, tensor<4xbf16>) -> tensor<2x8xbf16>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $self `,` $other attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

class Aten_Binary<string mnemonic, string arguments_, string formula,
                  list<Trait> traits = [Aten_Derivative]>
    : Aten_Op<mnemonic, "aten::" # mnemonic # arguments_, "Pointwise",
              !listconcat([InferTypeOpAdaptor], traits)> {
  let summary = formula;
  let description = [{
    Shapes broadcast and element types promote as in PyTorch.

    ```mlir
    %0 = aten.}] # mnemonic # [{ %a, %b : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $self `,` $other attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_AddTensorOp : Aten_Binary<"add.Tensor", "(%0, %1, 1)", "a + b">;
def Aten_SubTensorOp : Aten_Binary<"sub.Tensor", "(%0, %1, 1)", "a - b">;
def Aten_MulTensorOp : Aten_Binary<"mul.Tensor", "(%0, %1)", "a * b">;
def Aten_DivTensorOp : Aten_Binary<"div.Tensor", "(%0, %1)", "a / b">;
def Aten_BitwiseAndTensorOp
    : Aten_Binary<"bitwise_and.Tensor", "(%0, %1)", "a and b", []>;
def Aten_LogicalAndOp : Aten_Binary<"logical_and", "(%0, %1)", "a and b", []>;

class Aten_WithScalar<string mnemonic, string arguments_, string formula,
                      list<Trait> traits = [Aten_Derivative, Aten_OwnWorkspace]>
    : Aten_Op<mnemonic, "aten::" # mnemonic # arguments_, "Pointwise",
              !listconcat([InferTypeOpAdaptor], traits)> {
  let summary = formula;
  let description = [{
    The scalar keeps the tensor's element type, unless it is a floating-point
    number and the tensor holds integers.

    ```mlir
    %0 = aten.}] # mnemonic # [{ %x, 2.0 : (tensor<2x8xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Scalar:$other);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $self `,` custom<Scalar>($other) attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_AddScalarOp : Aten_WithScalar<"add.Scalar", "(%0, $other, 1)", "x + c">;
def Aten_SubScalarOp : Aten_WithScalar<"sub.Scalar", "(%0, $other, 1)", "x - c">;
def Aten_RsubScalarOp : Aten_WithScalar<"rsub.Scalar", "(%0, $other, 1)", "c - x">;
def Aten_MulScalarOp : Aten_WithScalar<"mul.Scalar", "(%0, $other)", "x * c">;
def Aten_DivScalarOp : Aten_WithScalar<"div.Scalar", "(%0, $other)", "x / c">;
def Aten_PowTensorScalarOp
    : Aten_WithScalar<"pow.Tensor_Scalar", "(%0, $other)", "x to the power of c",
                      [Aten_Derivative]>;
def Aten_PowScalarOp
    : Aten_WithScalar<"pow.Scalar", "($other, %0)", "c to the power of x">;
def Aten_GtScalarOp : Aten_WithScalar<"gt.Scalar", "(%0, $other)", "x > c",
                                      [Aten_OwnWorkspace]>;
def Aten_LtScalarOp : Aten_WithScalar<"lt.Scalar", "(%0, $other)", "x < c",
                                      [Aten_OwnWorkspace]>;

def Aten_SiluBackwardOp
    : Aten_Op<"silu_backward", "aten::silu_backward(%0, %1)", "Pointwise",
              [SameOperandsAndResultType]> {
  let summary = "gradient of silu";
  let description = [{
    ```mlir
    %0 = aten.silu_backward %grad, %x : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self);
  let results = (outs Aten_FloatTensor:$grad_input);
  let assemblyFormat = "$grad_output `,` $self attr-dict `:` type($grad_input)";
}

def Aten_WhereSelfOp
    : Aten_Op<"where.self", "aten::where.self(%0, %1, %2)", "Pointwise",
              [InferTypeOpAdaptor, Aten_Derivative]> {
  let summary = "c ? a : b";
  let description = [{
    ```mlir
    %0 = aten.where.self %c, %a, %b : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins Aten_BoolTensor:$condition, Aten_Tensor:$self,
                       Aten_Tensor:$other);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $condition `,` $self `,` $other attr-dict `:`
    functional-type(operands, results)
  }];
}

#endif // ACCEL_DIALECTS_ATEN_POINTWISE_TD
