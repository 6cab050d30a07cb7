//===- AtenKernels.td - Norms, loss, opaque ----------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_KERNELS_TD
#define ACCEL_DIALECTS_ATEN_KERNELS_TD

include "dialects/Aten/AtenBase.td"

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

def Aten_RmsNormOp
    : Aten_Op<"rms_norm", "", "Reduction", [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = "RMSNorm over the last dimension, not yet a kernel";
  let description = [{
    As the models write it: x in fp32, divided by sqrt(mean(x * x) + eps), cast
    back to the element type of x, times the weight. With `wide` the product is
    cast instead (OLMo 2), with `shifted` the factor is 1 + weight, in fp32
    (Gemma, which is `wide` too). `select-kernels` replaces it: by one kernel
    where the device has it, else by these steps.

    ```mlir
    %0 = aten.rms_norm %x, %w {eps = 1.0e-06 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>) -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$weight,
                       F64Attr:$eps, UnitAttr:$wide, UnitAttr:$shifted);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $self `,` $weight attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_FusedRmsNormOp
    : Aten_Op<"_fused_rms_norm",
              "aten::_fused_rms_norm(%0, $normalized_shape, %1, $eps)",
              "Reduction", [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost]> {
  let summary = "RMSNorm as one CUDA kernel";
  let description = [{
    Returns the output and 1 / sqrt(mean(x * x) + eps) in fp32.
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$weight,
                       DenseI64ArrayAttr:$normalized_shape, F64Attr:$eps);
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$rstd);
  let assemblyFormat = [{
    $self `,` $weight `,` $normalized_shape attr-dict `:`
    functional-type(operands, results)
  }];
}

def Aten_FusedRmsNormBackwardOp
    : Aten_Op<"_fused_rms_norm_backward",
              "aten::_fused_rms_norm_backward(%0, %1, $normalized_shape, %2, %3, [true, true])",
              "Reduction", [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = "gradients of x and of the weight of _fused_rms_norm";
  let description = [{
    Operands: the output's gradient, x, rstd, the weight.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$self,
                       Aten_FloatTensor:$rstd, Aten_FloatTensor:$weight,
                       DenseI64ArrayAttr:$normalized_shape);
  let results = (outs Aten_FloatTensor:$grad_self, Aten_FloatTensor:$grad_weight);
  let assemblyFormat = [{
    $grad_out `,` $self `,` $rstd `,` $weight `,` $normalized_shape attr-dict
    `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

def Aten_LogSoftmaxOp
    : Aten_Op<"_log_softmax", "aten::_log_softmax(%0, $dim, false)", "Reduction",
              [SameOperandsAndResultType, Aten_Derivative, Aten_OwnCost]> {
  let summary = "log(softmax(x)) along a dimension";
  let description = [{
    ```mlir
    %0 = aten._log_softmax %x, 1 : tensor<8x100xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, I64Attr:$dim);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = "$self `,` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Aten_LogSoftmaxBackwardDataOp
    : Aten_Op<"_log_softmax_backward_data",
              "aten::_log_softmax_backward_data(%0, %1, $dim, $input_dtype)",
              "Reduction", [SameOperandsAndResultType, Aten_OwnCost]> {
  let summary = "gradient of _log_softmax, from its output";
  let description = [{
    ```mlir
    %0 = aten._log_softmax_backward_data %grad, %out, 1, f32 : tensor<8x100xf32>
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

def Aten_NllLossForwardOp
    : Aten_Op<"nll_loss_forward",
              "aten::nll_loss_forward(%0, %1, none, $reduction, $ignore_index)", "Reduction",
              [InferTypeOpAdaptor, Aten_Derivative]> {
  let summary = "mean negative log likelihood of the targets";
  let description = [{
    Rows whose target is `ignore_index` do not count. Returns the mean
    (`reduction` 1) or the sum (2), and the number of rows that count, both 0-d.

    ```mlir
    %loss, %n = aten.nll_loss_forward %logp, %target : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_IntTensor:$target,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       DefaultValuedAttr<I64Attr, "1">:$reduction);
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$total_weight);
  let assemblyFormat = [{
    $self `,` $target attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Aten_NllLossBackwardOp
    : Aten_Op<"nll_loss_backward",
              "aten::nll_loss_backward(%0, %1, %2, none, $reduction, $ignore_index, %3)",
              "Memory", [InferTypeOpAdaptor]> {
  let summary = "gradient of nll_loss_forward";
  let description = [{
    ```mlir
    %0 = aten.nll_loss_backward %grad, %logp, %target, %n : (tensor<f32>, tensor<8x100xf32>, tensor<8xi64>, tensor<f32>) -> tensor<8x100xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self,
                       Aten_IntTensor:$target, Aten_FloatTensor:$total_weight,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       DefaultValuedAttr<I64Attr, "1">:$reduction);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $grad_output `,` $self `,` $target `,` $total_weight attr-dict `:`
    functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Operators that are not modelled
//===----------------------------------------------------------------------===//

def Aten_OpaqueOp : Aten_Op<"opaque", "", "Opaque",
                            [Aten_Derivative, Aten_OwnWorkspace]> {
  let summary = "an ATen operator that the dialect does not model";
  let description = [{
    `args` follows the operator's schema: the string "%i" is operand i, "none"
    a missing optional, "=text" the string `text`, a list of strings a list of
    tensors; anything else is an integer, float, truth value, list or element
    type. Each operand stands in it once. The results are contiguous and own
    their memory, also those of views. An operator that writes to its arguments
    is refused. The backward repeats the forward under LibTorch's autograd.

    ```mlir
    %0 = aten.opaque "aten::celu"(%x) ["%0", 1.0] : (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins StrAttr:$callee, Variadic<Aten_Tensor>:$inputs,
                       ArrayAttr:$args);
  let results = (outs Variadic<Aten_Tensor>:$outputs);
  let assemblyFormat = [{
    $callee `(` $inputs `)` $args attr-dict `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
}

def Aten_OpaqueBackwardOp
    : Aten_Op<"opaque_backward", "", "Opaque",
              [AttrSizedOperandSegments, Aten_OwnWorkspace]> {
  let summary = "gradients of an opaque operator";
  let description = [{
    Runs `callee` on `inputs` under autograd and returns the gradients of the inputs
    that `needed` lists, given those of the floating-point outputs.

    ```mlir
    %0 = aten.opaque_backward "aten::celu"(%g) of (%x) ["%0", 1.0] needed [0] : (tensor<8xf32>) of (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins StrAttr:$callee, Variadic<Aten_Tensor>:$grads,
                       Variadic<Aten_Tensor>:$inputs, ArrayAttr:$args,
                       DenseI64ArrayAttr:$needed);
  let results = (outs Variadic<Aten_Tensor>:$outputs);
  let assemblyFormat = [{
    $callee `(` $grads `)` `of` `(` $inputs `)` $args `needed` $needed attr-dict `:`
    `(` type($grads) `)` `of` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
}

#endif // ACCEL_DIALECTS_ATEN_KERNELS_TD
