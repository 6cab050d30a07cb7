//===- AtenActivations.td - Activation functions -----------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_ACTIVATIONS_TD
#define ACCEL_DIALECTS_ATEN_ACTIVATIONS_TD

include "dialects/Aten/AtenPointwise.td"

def Aten_TanhOp : Aten_Unary<"tanh", "tanh(x)">;
def Aten_ReluOp : Aten_Unary<"relu", "max(x, 0)">;

def Aten_GeluOp
    : Aten_Op<"gelu", "aten::gelu(%0, $approximate)", "Pointwise",
              [SameOperandsAndResultType, Aten_Derivative]> {
  let summary = "x * P(N(0, 1) < x)";
  let description = [{
    `approximate` is "none" or "tanh".

    ```mlir
    %0 = aten.gelu %x, "none" : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, StrAttr:$approximate);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = "$self `,` $approximate attr-dict `:` type($result)";
  let hasVerifier = 1;
}

/// The gradient of an activation from `operand`: its input or its output.
class Aten_ActivationBackward<string mnemonic, string aten, string what>
    : Aten_Op<mnemonic, aten, "Pointwise", [SameOperandsAndResultType]> {
  let summary = what;
  let description = [{
    ```mlir
    %0 = aten.}] # mnemonic # [{ %grad, %x : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$operand);
  let results = (outs Aten_FloatTensor:$grad_input);
  let assemblyFormat = "$grad_output `,` $operand attr-dict `:` type($grad_input)";
}

def Aten_TanhBackwardOp
    : Aten_ActivationBackward<"tanh_backward", "aten::tanh_backward(%0, %1)",
                              "gradient of tanh, from its output">;
def Aten_ThresholdBackwardOp
    : Aten_ActivationBackward<"threshold_backward",
                              "aten::threshold_backward(%0, %1, 0)",
                              "gradient of relu, from its output">;

def Aten_GeluBackwardOp
    : Aten_Op<"gelu_backward", "aten::gelu_backward(%0, %1, $approximate)",
              "Pointwise", [SameOperandsAndResultType]> {
  let summary = "gradient of gelu";
  let description = [{
    ```mlir
    %0 = aten.gelu_backward %grad, %x, "none" : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self,
                       StrAttr:$approximate);
  let results = (outs Aten_FloatTensor:$grad_input);
  let assemblyFormat = [{
    $grad_output `,` $self `,` $approximate attr-dict `:` type($grad_input)
  }];
}

#endif // ACCEL_DIALECTS_ATEN_ACTIVATIONS_TD
