//===- AtenNorms.td - Layer normalization ------------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_NORMS_TD
#define ACCEL_DIALECTS_ATEN_NORMS_TD

include "dialects/Aten/AtenBase.td"

def Aten_LayerNormOp
    : Aten_Op<"layer_norm", "", "Reduction", [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = "(x - mean) / sqrt(variance + eps) * weight + bias";
  let description = [{
    Over the last dimension. `select-kernels` makes a `native_layer_norm` of it,
    whose statistics have the device's element type.

    ```mlir
    %0 = aten.layer_norm %x, %w bias %b, 1.000000e-05 : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$weight,
                       Optional<Aten_FloatTensor>:$bias, F64Attr:$eps);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $self `,` $weight (`bias` $bias^)? `,` $eps attr-dict `:`
    functional-type(operands, results)
  }];
}

def Aten_NativeLayerNormOp
    : Aten_Op<"native_layer_norm",
              "aten::native_layer_norm(%0, $normalized_shape, %1, %2?, $eps)",
              "Reduction", [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost]> {
  let summary = "layer_norm as one kernel";
  let description = [{
    Returns the output, the mean and 1 / sqrt(variance + eps); the statistics
    are of `stats`: the input's element type on CPUs, fp32 on CUDA.
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$weight,
                       Optional<Aten_FloatTensor>:$bias,
                       DenseI64ArrayAttr:$normalized_shape, F64Attr:$eps,
                       TypeAttr:$stats);
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$mean,
                      Aten_FloatTensor:$rstd);
  let assemblyFormat = [{
    $self `,` $weight (`bias` $bias^)? `,` $normalized_shape attr-dict `:`
    functional-type(operands, results)
  }];
}

def Aten_NativeLayerNormBackwardOp
    : Aten_Op<"native_layer_norm_backward",
              "aten::native_layer_norm_backward(%0, %1, $normalized_shape, %2, %3, %4, %5?, $output_mask) -> 3",
              "Reduction",
              [InferTypeOpAdaptor, Aten_OwnCost, Aten_OwnWorkspace]> {
  let summary = "gradients of native_layer_norm";
  let description = [{
    Operands: the output's gradient, x, mean, rstd, the weight and, if there is
    one, the bias. Results: the gradients of x, weight and bias that
    `output_mask` asks for; those of x and weight always.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$self,
                       Aten_FloatTensor:$mean, Aten_FloatTensor:$rstd,
                       Aten_FloatTensor:$weight,
                       Optional<Aten_FloatTensor>:$bias,
                       DenseI64ArrayAttr:$normalized_shape,
                       DenseBoolArrayAttr:$output_mask);
  let results = (outs Aten_FloatTensor:$grad_self, Aten_FloatTensor:$grad_weight,
                      Optional<Aten_FloatTensor>:$grad_bias);
  let assemblyFormat = [{
    $grad_out `,` $self `,` $mean `,` $rstd `,` $weight (`bias` $bias^)? `,`
    $normalized_shape attr-dict `:` functional-type(operands, results)
  }];
}

#endif // ACCEL_DIALECTS_ATEN_NORMS_TD
