//===- AtenLosses.td - Losses of element by element --------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// `reduction` is PyTorch's: 0 leaves a loss for each element, 1 is their mean,
// 2 their sum.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_LOSSES_TD
#define ACCEL_DIALECTS_ATEN_LOSSES_TD

include "dialects/Aten/AtenBase.td"

/// A loss of x and targets of the same type; `more` are further attributes.
class Aten_ElementLoss<string mnemonic, string arguments_, string what,
                       dag more = (ins), list<Trait> traits = []>
    : Aten_Plain<mnemonic, "aten::" # mnemonic # arguments_, "Reduction", what,
                 !listconcat([Aten_Derivative, Aten_OwnCost, Aten_OwnStrides,
                              Aten_OwnWorkspace], traits)> {
  let description = [{
    ```mlir
    %0 = aten.mse_loss %x, %y {reduction = 1 : i64} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<f32>
    ```
  }];
  let arguments = !con((ins Aten_FloatTensor:$self, Aten_FloatTensor:$target),
                       (ins I64Attr:$reduction), more);
  let results = (outs Aten_FloatTensor:$result);
}

/// The gradient of x; `grad_output` has the shape of the loss.
class Aten_ElementLossBackward<string mnemonic, string arguments_, string what,
                               dag more = (ins)>
    : Aten_Plain<mnemonic, "aten::" # mnemonic # arguments_, "Pointwise", what,
                 [Aten_OwnStrides, Aten_OwnWorkspace]> {
  let description = [{
    Operands: the loss's gradient, x and the targets.
  }];
  let arguments = !con((ins Aten_FloatTensor:$grad_output,
                            Aten_FloatTensor:$self, Aten_FloatTensor:$target),
                       (ins I64Attr:$reduction), more);
  let results = (outs Aten_FloatTensor:$grad_input);
}

def Aten_MseLossOp
    : Aten_ElementLoss<"mse_loss", "(%0, %1, $reduction)", "(x - y) squared">;
def Aten_MseLossBackwardOp
    : Aten_ElementLossBackward<"mse_loss_backward", "(%0, %1, %2, $reduction)",
                               "gradient of mse_loss">;

def Aten_SmoothL1LossOp
    : Aten_ElementLoss<"smooth_l1_loss", "(%0, %1, $reduction, $beta)",
                       "|x - y| - beta / 2, or (x - y)^2 / (2 beta) within beta",
                       (ins F64Attr:$beta)>;
def Aten_SmoothL1LossBackwardOp
    : Aten_ElementLossBackward<"smooth_l1_loss_backward",
                               "(%0, %1, %2, $reduction, $beta)",
                               "gradient of smooth_l1_loss",
                               (ins F64Attr:$beta)>;

def Aten_HuberLossOp
    : Aten_ElementLoss<"huber_loss", "(%0, %1, $reduction, $delta)",
                       "delta (|x - y| - delta / 2), or (x - y)^2 / 2 within delta",
                       (ins F64Attr:$delta)>;
def Aten_HuberLossBackwardOp
    : Aten_ElementLossBackward<"huber_loss_backward",
                               "(%0, %1, %2, $reduction, $delta)",
                               "gradient of huber_loss", (ins F64Attr:$delta)>;

//===----------------------------------------------------------------------===//
// Of probabilities
//===----------------------------------------------------------------------===//

def Aten_BinaryCrossEntropyOp
    : Aten_Plain<"binary_cross_entropy",
                 "aten::binary_cross_entropy(%0, %1, %2?, $reduction)",
                 "Reduction", "-w (y log(x) + (1 - y) log(1 - x))",
                 [Aten_Derivative, Aten_OwnCost, Aten_OwnStrides,
                  Aten_OwnWorkspace]> {
  let description = [{
    x holds probabilities; logarithms are at least -100. The weights, where there
    are any, have the type of x.

    ```mlir
    %0 = aten.binary_cross_entropy %x, %y {reduction = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$target,
                       Optional<Aten_FloatTensor>:$weight, I64Attr:$reduction);
  let results = (outs Aten_FloatTensor:$result);
}

def Aten_BinaryCrossEntropyBackwardOp
    : Aten_Plain<"binary_cross_entropy_backward",
                 "aten::binary_cross_entropy_backward(%0, %1, %2, %3?, $reduction)",
                 "Pointwise", "gradient of binary_cross_entropy",
                 [Aten_OwnStrides, Aten_OwnWorkspace]> {
  let description = [{
    Operands: the loss's gradient, x, the targets and, where there are any, the
    weights.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self,
                       Aten_FloatTensor:$target,
                       Optional<Aten_FloatTensor>:$weight, I64Attr:$reduction);
  let results = (outs Aten_FloatTensor:$grad_input);
}

def Aten_BinaryCrossEntropyWithLogitsOp
    : Aten_Plain<"binary_cross_entropy_with_logits",
                 "aten::binary_cross_entropy_with_logits(%0, %1, none, %2?, $reduction)",
                 "Reduction", "binary_cross_entropy of sigmoid(x)",
                 [Aten_Derivative, Aten_OwnCost, Aten_OwnStrides,
                  Aten_OwnWorkspace]> {
  let description = [{
    `pos_weight`, where there is one, multiplies the part of positive targets, and
    broadcasts to them. Weights of elements are a factor of the loss without a
    reduction.

    ```mlir
    %0 = aten.binary_cross_entropy_with_logits %x, %y {reduction = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$target,
                       Optional<Aten_FloatTensor>:$pos_weight,
                       I64Attr:$reduction);
  let results = (outs Aten_FloatTensor:$result);
}

#endif // ACCEL_DIALECTS_ATEN_LOSSES_TD
