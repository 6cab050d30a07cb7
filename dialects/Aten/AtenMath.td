//===- AtenMath.td - Functions of each element -------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_MATH_TD
#define ACCEL_DIALECTS_ATEN_MATH_TD

include "dialects/Aten/AtenActivations.td"

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

def Aten_SigmoidOp : Aten_Unary<"sigmoid", "1 / (1 + exp(-x))">;
def Aten_LogOp : Aten_Unary<"log", "log(x)">;
def Aten_Log2Op : Aten_Unary<"log2", "logarithm to the base 2">;
def Aten_Log10Op : Aten_Unary<"log10", "logarithm to the base 10">;
def Aten_Log1pOp : Aten_Unary<"log1p", "log(1 + x)">;
def Aten_Exp2Op : Aten_Unary<"exp2", "2 to the power of x">;
def Aten_Expm1Op : Aten_Unary<"expm1", "exp(x) - 1">;
def Aten_ErfOp : Aten_Unary<"erf", "the error function">;
def Aten_TanOp : Aten_Unary<"tan", "tan(x)">;
def Aten_AtanOp : Aten_Unary<"atan", "the arc tangent">;
def Aten_SinhOp : Aten_Unary<"sinh", "sinh(x)">;
def Aten_CoshOp : Aten_Unary<"cosh", "cosh(x)">;
def Aten_ErfcOp : Aten_Unary<"erfc", "1 - erf(x)">;
def Aten_AsinOp : Aten_Unary<"asin", "the arc sine">;
def Aten_AcosOp : Aten_Unary<"acos", "the arc cosine">;
def Aten_AsinhOp : Aten_Unary<"asinh", "the inverse of sinh">;
def Aten_AcoshOp : Aten_Unary<"acosh", "the inverse of cosh">;
def Aten_AtanhOp : Aten_Unary<"atanh", "the inverse of tanh">;
def Aten_LogSigmoidOp
    : Aten_Unary<"log_sigmoid", "log(sigmoid(x))",
                 [Aten_OwnStrides, Aten_OwnWorkspace]>;

/// The same, also of integers; `slope` is 0 where the function is a step.
class Aten_AnyUnary<string mnemonic, string formula>
    : Aten_Op<mnemonic, "aten::" # mnemonic # "(%0)", "Pointwise",
              [SameOperandsAndResultType, Aten_Derivative]> {
  let summary = formula;
  let description = [{
    ```mlir
    %0 = aten.}] # mnemonic # [{ %x : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = "$self attr-dict `:` type($result)";
}

/// Of integers and floating-point numbers, but no truth values.
class Aten_NumberUnary<string mnemonic, string formula>
    : Aten_AnyUnary<mnemonic, formula> {
  let hasVerifier = 1;
}

def Aten_AbsOp : Aten_NumberUnary<"abs", "x without its sign">;
def Aten_SgnOp : Aten_AnyUnary<"sgn", "-1, 0 or 1">;
def Aten_SignOp : Aten_AnyUnary<"sign", "-1, 0 or 1">;
def Aten_FloorOp : Aten_NumberUnary<"floor", "the next integer below">;
def Aten_CeilOp : Aten_NumberUnary<"ceil", "the next integer above">;
def Aten_RoundOp : Aten_NumberUnary<"round", "the nearest integer, halves to even">;
def Aten_TruncOp : Aten_NumberUnary<"trunc", "the next integer towards 0">;

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

def Aten_SigmoidBackwardOp
    : Aten_ActivationBackward<"sigmoid_backward", "aten::sigmoid_backward(%0, %1)",
                              "gradient of sigmoid, from its output">;
def Aten_HardswishOp : Aten_Unary<"hardswish", "x * relu6(x + 3) / 6">;
def Aten_HardswishBackwardOp
    : Aten_ActivationBackward<"hardswish_backward",
                              "aten::hardswish_backward(%0, %1)",
                              "gradient of hardswish">;
def Aten_HardsigmoidOp : Aten_Unary<"hardsigmoid", "relu6(x + 3) / 6">;
def Aten_HardsigmoidBackwardOp
    : Aten_ActivationBackward<"hardsigmoid_backward",
                              "aten::hardsigmoid_backward(%0, %1)",
                              "gradient of hardsigmoid">;
def Aten_MishOp : Aten_Unary<"mish", "x * tanh(softplus(x))">;
def Aten_MishBackwardOp
    : Aten_ActivationBackward<"mish_backward", "aten::mish_backward(%0, %1)",
                              "gradient of mish">;

/// An activation with numbers as attributes.
class Aten_Activation<string mnemonic, string aten, string what>
    : Aten_Plain<mnemonic, aten, "Pointwise", what, [Aten_Derivative]> {
  let description = [{
    ```mlir
    %0 = aten.leaky_relu %x {negative_slope = 1.0e-02 : f64} : (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let results = (outs Aten_FloatTensor:$result);
}
class Aten_ActivationGrad<string mnemonic, string aten, string what>
    : Aten_Plain<mnemonic, aten, "Pointwise", what> {
  let description = [{
    Operands: the output's gradient and the input.
  }];
  let results = (outs Aten_FloatTensor:$grad_input);
}

def Aten_LeakyReluOp
    : Aten_Activation<"leaky_relu", "aten::leaky_relu(%0, $negative_slope)",
                      "x, or negative_slope * x below 0"> {
  let arguments = (ins Aten_FloatTensor:$self, F64Attr:$negative_slope);
}
def Aten_LeakyReluBackwardOp
    : Aten_ActivationGrad<"leaky_relu_backward",
                          "aten::leaky_relu_backward(%0, %1, $negative_slope, false)",
                          "gradient of leaky_relu"> {
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self,
                       F64Attr:$negative_slope);
}
def Aten_EluOp
    : Aten_Activation<"elu", "aten::elu(%0, $alpha, $scale, $input_scale)",
                      "scale * (x, or alpha * (exp(input_scale * x) - 1) below 0)"> {
  let arguments = (ins Aten_FloatTensor:$self, F64Attr:$alpha, F64Attr:$scale,
                       F64Attr:$input_scale);
}
def Aten_EluBackwardOp
    : Aten_ActivationGrad<"elu_backward",
                          "aten::elu_backward(%0, $alpha, $scale, $input_scale, false, %1)",
                          "gradient of elu"> {
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self,
                       F64Attr:$alpha, F64Attr:$scale, F64Attr:$input_scale);
}
def Aten_SoftplusOp
    : Aten_Activation<"softplus", "aten::softplus(%0, $beta, $threshold)",
                      "log(1 + exp(beta x)) / beta, x where beta x > threshold"> {
  let arguments = (ins Aten_FloatTensor:$self, F64Attr:$beta,
                       F64Attr:$threshold);
}
def Aten_SoftplusBackwardOp
    : Aten_ActivationGrad<"softplus_backward",
                          "aten::softplus_backward(%0, %1, $beta, $threshold)",
                          "gradient of softplus"> {
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self,
                       F64Attr:$beta, F64Attr:$threshold);
}
def Aten_HardtanhOp
    : Aten_Activation<"hardtanh", "aten::hardtanh(%0, $min_val, $max_val)",
                      "x within [min_val, max_val]; relu6 is 0 to 6"> {
  let arguments = (ins Aten_FloatTensor:$self, F64Attr:$min_val,
                       F64Attr:$max_val);
}
def Aten_HardtanhBackwardOp
    : Aten_ActivationGrad<"hardtanh_backward",
                          "aten::hardtanh_backward(%0, %1, $min_val, $max_val)",
                          "gradient of hardtanh"> {
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self,
                       F64Attr:$min_val, F64Attr:$max_val);
}

def Aten_GluOp
    : Aten_Plain<"glu", "aten::glu(%0, $dim)", "Pointwise",
                 "one half of a dimension times the sigmoid of the other",
                 [Aten_Derivative, Aten_OwnStrides]> {
  let description = [{
    ```mlir
    %0 = aten.glu %x {dim = 1 : i64} : (tensor<2x8xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, I64Attr:$dim);
  let results = (outs Aten_FloatTensor:$result);
}
def Aten_GluBackwardOp
    : Aten_Plain<"glu_backward", "aten::glu_backward(%0, %1, $dim)",
                 "Pointwise", "gradient of glu", [Aten_OwnStrides]> {
  let description = [{
    Operands: the output's gradient and the input.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self,
                       I64Attr:$dim);
  let results = (outs Aten_FloatTensor:$grad_input);
}

def Aten_PreluKernelOp
    : Aten_Plain<"_prelu_kernel", "aten::_prelu_kernel(%0, %1)", "Pointwise",
                 "x, or weight * x below 0", [Aten_Derivative]> {
  let description = [{
    The weight broadcasts to x.

    ```mlir
    %0 = aten._prelu_kernel %x, %w : (tensor<2x3x8xf32>, tensor<1x3x1xf32>) -> tensor<2x3x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$weight);
  let results = (outs Aten_FloatTensor:$result);
}
def Aten_PreluKernelBackwardOp
    : Aten_Plain<"_prelu_kernel_backward",
                 "aten::_prelu_kernel_backward(%0, %1, %2)", "Pointwise",
                 "gradients of _prelu_kernel"> {
  let description = [{
    Operands: the output's gradient, x and the weight. The weight's gradient has
    the shape of x.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self,
                       Aten_FloatTensor:$weight);
  let results = (outs Aten_FloatTensor:$grad_self, Aten_FloatTensor:$grad_weight);
}

//===----------------------------------------------------------------------===//
// Several operands
//===----------------------------------------------------------------------===//

def Aten_Atan2Op : Aten_Binary<"atan2", "(%0, %1)", "the angle of (b, a)">;
def Aten_RemainderTensorOp
    : Aten_Binary<"remainder.Tensor", "(%0, %1)", "a - b floor(a / b)">;
def Aten_FmodTensorOp
    : Aten_Binary<"fmod.Tensor", "(%0, %1)", "a - b trunc(a / b)">;
def Aten_RemainderScalarOp
    : Aten_WithScalar<"remainder.Scalar", "(%0, $other)", "x - c floor(x / c)">;
def Aten_FmodScalarOp
    : Aten_WithScalar<"fmod.Scalar", "(%0, $other)", "x - c trunc(x / c)">;

/// Three tensors of one element type, which broadcast.
class Aten_Ternary<string mnemonic, string arguments_, string formula,
                   dag operands_, dag more>
    : Aten_Plain<mnemonic, "aten::" # mnemonic # arguments_, "Pointwise",
                 formula, [Aten_Derivative, Aten_OwnWorkspace]> {
  let description = [{
    ```mlir
    %0 = aten.addcmul %x, %a, %b {value = 1.0 : f64} : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = !con(operands_, more);
  let results = (outs Aten_FloatTensor:$result);
}
def Aten_AddcmulOp
    : Aten_Ternary<"addcmul", "(%0, %1, %2, $value)", "x + value * a * b",
                   (ins Aten_FloatTensor:$self, Aten_FloatTensor:$tensor1,
                        Aten_FloatTensor:$tensor2), (ins F64Attr:$value)>;
def Aten_AddcdivOp
    : Aten_Ternary<"addcdiv", "(%0, %1, %2, $value)", "x + value * a / b",
                   (ins Aten_FloatTensor:$self, Aten_FloatTensor:$tensor1,
                        Aten_FloatTensor:$tensor2), (ins F64Attr:$value)>;
def Aten_LerpTensorOp
    : Aten_Ternary<"lerp.Tensor", "(%0, %1, %2)", "x + weight * (end - x)",
                   (ins Aten_FloatTensor:$self, Aten_FloatTensor:$end,
                        Aten_FloatTensor:$weight), (ins)>;
def Aten_LerpScalarOp
    : Aten_Ternary<"lerp.Scalar", "(%0, %1, $weight)", "x + weight * (end - x)",
                   (ins Aten_FloatTensor:$self, Aten_FloatTensor:$end),
                   (ins F64Attr:$weight)>;

//===----------------------------------------------------------------------===//
// Bounds, masks, powers
//===----------------------------------------------------------------------===//

def Aten_MaximumOp : Aten_Binary<"maximum", "(%0, %1)", "the larger of a and b">;
def Aten_MinimumOp : Aten_Binary<"minimum", "(%0, %1)", "the smaller of a and b">;
def Aten_PowTensorTensorOp
    : Aten_Binary<"pow.Tensor_Tensor", "(%0, %1)", "a to the power of b">;

def Aten_ClampOp
    : Aten_Plain<"clamp", "aten::clamp(%0, $min, $max)", "Pointwise",
                 "x within [min, max]", [Aten_Derivative]> {
  let description = [{
    One of the bounds may be absent.

    ```mlir
    %0 = aten.clamp %x {min = 0.0 : f64} : (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, OptionalAttr<Aten_Scalar>:$min,
                       OptionalAttr<Aten_Scalar>:$max);
  let results = (outs Aten_Tensor:$result);
}

def Aten_MaskedFillScalarOp
    : Aten_Plain<"masked_fill.Scalar", "aten::masked_fill.Scalar(%0, %1, $value)",
                 "Pointwise", "a number where the mask holds",
                 [Aten_Derivative, Aten_OwnStrides, Aten_OwnWorkspace]> {
  let description = [{
    Operand and mask broadcast. The result is contiguous.

    ```mlir
    %0 = aten.masked_fill.Scalar %x, %m {value = 0.0 : f64} : (tensor<2x8xf32>, tensor<8xi1>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_BoolTensor:$mask,
                       Aten_Scalar:$value);
  let results = (outs Aten_Tensor:$result);
}

def Aten_MaskedFillTensorOp
    : Aten_Plain<"masked_fill.Tensor", "aten::masked_fill.Tensor(%0, %1, %2)",
                 "Pointwise", "a 0-d tensor's value where the mask holds",
                 [Aten_Derivative, Aten_OwnStrides, Aten_OwnWorkspace]> {
  let description = [{
    ```mlir
    %0 = aten.masked_fill.Tensor %x, %m, %v : (tensor<2x8xf32>, tensor<8xi1>, tensor<f32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_BoolTensor:$mask,
                       Aten_Tensor:$value);
  let results = (outs Aten_Tensor:$result);
}

def Aten_DivTensorModeOp
    : Aten_Plain<"div.Tensor_mode", "aten::div.Tensor_mode(%0, %1, $rounding_mode)",
                 "Pointwise", "a / b, rounded", [Aten_Derivative]> {
  let description = [{
    `rounding_mode` is "floor" or "trunc".

    ```mlir
    %0 = aten.div.Tensor_mode %a, %b {rounding_mode = "floor"} : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other,
                       StrAttr:$rounding_mode);
  let results = (outs Aten_Tensor:$result);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

def Aten_FullOp
    : Aten_Plain<"full", "aten::full($size, $fill_value, $dtype, none, none, none)",
                 "Memory", "one number everywhere"> {
  let description = [{
    Also zeros, ones and scalar_tensor.

    ```mlir
    %0 = aten.full {size = array<i64: 2, 8>, fill_value = 0.0 : f64, dtype = f32} : () -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$size, Aten_Scalar:$fill_value,
                       TypeAttr:$dtype);
  let results = (outs Aten_Tensor:$result);
}

def Aten_FullLikeOp
    : Aten_Plain<"full_like",
                 "aten::full_like(%0, $fill_value, $dtype, none, none, none, none)",
                 "Memory", "one number in the operand's shape and layout",
                 [Aten_OwnStrides]> {
  let description = [{
    ```mlir
    %0 = aten.full_like %x {fill_value = 1 : i64, dtype = i1} : (tensor<8xf32>) -> tensor<8xi1>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Scalar:$fill_value,
                       TypeAttr:$dtype);
  let results = (outs Aten_Tensor:$result);
}

#endif // ACCEL_DIALECTS_ATEN_MATH_TD
