//===- AtenImage.td - Norms over channels, pooling, resizing *- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_IMAGE_TD
#define ACCEL_DIALECTS_ATEN_IMAGE_TD

include "dialects/Aten/AtenBase.td"

//===----------------------------------------------------------------------===//
// Norms over channels
//===----------------------------------------------------------------------===//

def Aten_BatchNormFunctionalOp
    : Aten_Plain<"_native_batch_norm_legit_functional",
                 "aten::_native_batch_norm_legit_functional(%0, %1, %2, %3, %4, true, $momentum, $eps)",
                 "Reduction", "batch norm in training",
                 [Aten_Derivative, Aten_OwnCost, Aten_OwnStrides,
                  Aten_OwnWorkspace]> {
  let description = [{
    x is [N, C, ...]; weight, bias and the running mean and variance are [C].
    Returns the output, the batch's mean and 1 / sqrt(variance + eps), and the new
    running mean and variance. Not in 16 bits.
  }];
  let arguments = (ins Aten_FloatTensor:$input, Aten_FloatTensor:$weight,
                       Aten_FloatTensor:$bias, Aten_FloatTensor:$running_mean,
                       Aten_FloatTensor:$running_var, F64Attr:$momentum,
                       F64Attr:$eps);
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$save_mean,
                      Aten_FloatTensor:$save_invstd,
                      Aten_FloatTensor:$new_mean, Aten_FloatTensor:$new_var);
}

def Aten_BatchNormNoStatsOp
    : Aten_Plain<"_native_batch_norm_legit.no_stats",
                 "aten::_native_batch_norm_legit.no_stats(%0, %1, %2, true, $momentum, $eps)",
                 "Reduction", "batch norm by the batch's own statistics",
                 [Aten_Derivative, Aten_OwnCost, Aten_OwnStrides]> {
  let description = [{
    Returns the output, the batch's mean and 1 / sqrt(variance + eps).
  }];
  let arguments = (ins Aten_FloatTensor:$input, Aten_FloatTensor:$weight,
                       Aten_FloatTensor:$bias, F64Attr:$momentum, F64Attr:$eps);
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$save_mean,
                      Aten_FloatTensor:$save_invstd);
}

def Aten_BatchNormNoTrainingOp
    : Aten_Plain<"_native_batch_norm_legit_no_training",
                 "aten::_native_batch_norm_legit_no_training(%0, %1, %2, %3, %4, $momentum, $eps) -> 3",
                 "Reduction", "batch norm by the running statistics",
                 [Aten_Derivative, Aten_OwnCost, Aten_OwnStrides]> {
  let description = [{
    x is [N, C, ...], the others are [C].
  }];
  let arguments = (ins Aten_FloatTensor:$input, Aten_FloatTensor:$weight,
                       Aten_FloatTensor:$bias, Aten_FloatTensor:$running_mean,
                       Aten_FloatTensor:$running_var, F64Attr:$momentum,
                       F64Attr:$eps);
  let results = (outs Aten_FloatTensor:$output);
}

class Aten_BatchNormBackward<string mnemonic, string aten, string what>
    : Aten_Plain<mnemonic, aten, "Reduction", what,
                 [Aten_OwnCost, Aten_OwnStrides]> {
  let description = [{
    Operands: the output's gradient, x, the weight, then mean and
    1 / sqrt(variance + eps) of the batch, or the running mean and variance.
    Results: those gradients of x, weight and bias that `output_mask` asks for.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$input,
                       Aten_FloatTensor:$weight, Aten_FloatTensor:$mean,
                       Aten_FloatTensor:$scale, F64Attr:$eps,
                       DenseBoolArrayAttr:$output_mask);
  let results = (outs Variadic<Aten_FloatTensor>:$gradients);
}
def Aten_BatchNormBackwardOp
    : Aten_BatchNormBackward<"native_batch_norm_backward",
                             "aten::native_batch_norm_backward(%0, %1, %2, none, none, %3, %4, true, $eps, $output_mask) -> 3 by output_mask",
                             "gradients of batch norm in training">;
def Aten_BatchNormEvalBackwardOp
    : Aten_BatchNormBackward<"native_batch_norm_backward.eval",
                             "aten::native_batch_norm_backward(%0, %1, %2, %3, %4, none, none, false, $eps, $output_mask) -> 3 by output_mask",
                             "gradients of batch norm by running statistics">;

def Aten_NativeGroupNormOp
    : Aten_Plain<"native_group_norm",
                 "aten::native_group_norm(%0, %1, %2, $N, $C, $HxW, $group, $eps)",
                 "Reduction", "norm over groups of channels",
                 [Aten_Derivative, Aten_OwnCost]> {
  let description = [{
    x is [N, C, ...] with HxW elements behind the channels. Returns the output,
    and mean and 1 / sqrt(variance + eps) as [N, group].
  }];
  let arguments = (ins Aten_FloatTensor:$input, Aten_FloatTensor:$weight,
                       Aten_FloatTensor:$bias, I64Attr:$N, I64Attr:$C,
                       I64Attr:$HxW, I64Attr:$group, F64Attr:$eps);
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$mean,
                      Aten_FloatTensor:$rstd);
}

def Aten_NativeGroupNormBackwardOp
    : Aten_Plain<"native_group_norm_backward",
                 "aten::native_group_norm_backward(%0, %1, %2, %3, %4, $N, $C, $HxW, $group, $output_mask) -> 3 by output_mask",
                 "Reduction", "gradients of native_group_norm",
                 [Aten_OwnCost]> {
  let description = [{
    Operands: the output's gradient, x, mean, rstd and the weight. Results: those
    gradients of x, weight and bias that `output_mask` asks for.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$input,
                       Aten_FloatTensor:$mean, Aten_FloatTensor:$rstd,
                       Aten_FloatTensor:$weight, I64Attr:$N, I64Attr:$C,
                       I64Attr:$HxW, I64Attr:$group,
                       DenseBoolArrayAttr:$output_mask);
  let results = (outs Variadic<Aten_FloatTensor>:$gradients);
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

defvar poolWindow = (ins DenseI64ArrayAttr:$kernel_size,
                         DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding);

def Aten_MaxPool2dOp
    : Aten_Plain<"max_pool2d_with_indices",
                 "aten::max_pool2d_with_indices(%0, $kernel_size, $stride, $padding, $dilation, $ceil_mode)",
                 "Reduction", "the largest element of each window",
                 [Aten_Derivative, Aten_OwnCost, Aten_OwnStrides]> {
  let description = [{
    x is [N, C, H, W]; the lists hold two numbers. Also returns where it was.
  }];
  let arguments = !con((ins Aten_FloatTensor:$self), poolWindow,
                       (ins DenseI64ArrayAttr:$dilation, BoolAttr:$ceil_mode));
  let results = (outs Aten_FloatTensor:$output, Aten_Tensor:$indices);
}

def Aten_MaxPool2dBackwardOp
    : Aten_Plain<"max_pool2d_with_indices_backward",
                 "aten::max_pool2d_with_indices_backward(%0, %1, $kernel_size, $stride, $padding, $dilation, $ceil_mode, %2)",
                 "Memory", "gradient of max_pool2d_with_indices",
                 [Aten_OwnStrides]> {
  let description = [{
    Operands: the output's gradient, x and the indices.
  }];
  let arguments = !con((ins Aten_FloatTensor:$grad_output,
                            Aten_FloatTensor:$self, Aten_IntTensor:$indices),
                       poolWindow,
                       (ins DenseI64ArrayAttr:$dilation, BoolAttr:$ceil_mode));
  let results = (outs Aten_FloatTensor:$grad_input);
}

def Aten_AvgPool2dOp
    : Aten_Plain<"avg_pool2d",
                 "aten::avg_pool2d(%0, $kernel_size, $stride, $padding, $ceil_mode, $count_include_pad, none)",
                 "Reduction", "the mean of each window",
                 [Aten_Derivative, Aten_OwnCost, Aten_OwnStrides]> {
  let description = [{
    x is [N, C, H, W]; the lists hold two numbers.
  }];
  let arguments = !con((ins Aten_FloatTensor:$self), poolWindow,
                       (ins BoolAttr:$ceil_mode, BoolAttr:$count_include_pad));
  let results = (outs Aten_FloatTensor:$output);
}

def Aten_AvgPool2dBackwardOp
    : Aten_Plain<"avg_pool2d_backward",
                 "aten::avg_pool2d_backward(%0, %1, $kernel_size, $stride, $padding, $ceil_mode, $count_include_pad, none)",
                 "Memory", "gradient of avg_pool2d", [Aten_OwnStrides]> {
  let description = [{
    Operands: the output's gradient and x.
  }];
  let arguments = !con((ins Aten_FloatTensor:$grad_output,
                            Aten_FloatTensor:$self), poolWindow,
                       (ins BoolAttr:$ceil_mode, BoolAttr:$count_include_pad));
  let results = (outs Aten_FloatTensor:$grad_input);
}

def Aten_AdaptiveAvgPool2dOp
    : Aten_Plain<"_adaptive_avg_pool2d",
                 "aten::_adaptive_avg_pool2d(%0, $output_size)", "Reduction",
                 "means of windows that give a size",
                 [Aten_Derivative, Aten_OwnCost, Aten_OwnStrides]> {
  let description = [{
    x is [N, C, H, W].

    ```mlir
    %0 = aten._adaptive_avg_pool2d %x {output_size = array<i64: 2, 2>} : (tensor<1x3x7x7xf32>) -> tensor<1x3x2x2xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, DenseI64ArrayAttr:$output_size);
  let results = (outs Aten_FloatTensor:$output);
}

def Aten_AdaptiveAvgPool2dBackwardOp
    : Aten_Plain<"_adaptive_avg_pool2d_backward",
                 "aten::_adaptive_avg_pool2d_backward(%0, %1)", "Memory",
                 "gradient of _adaptive_avg_pool2d", [Aten_OwnStrides]> {
  let description = [{
    Operands: the output's gradient and x.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$self);
  let results = (outs Aten_FloatTensor:$grad_input);
}

def Aten_UpsampleNearest2dOp
    : Aten_Plain<"upsample_nearest2d",
                 "aten::upsample_nearest2d(%0, $output_size, none, none)",
                 "Memory", "another size, by the nearest element",
                 [Aten_Derivative, Aten_OwnStrides]> {
  let description = [{
    x is [N, C, H, W].

    ```mlir
    %0 = aten.upsample_nearest2d %x {output_size = array<i64: 4, 4>} : (tensor<1x3x2x2xf32>) -> tensor<1x3x4x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, DenseI64ArrayAttr:$output_size);
  let results = (outs Aten_FloatTensor:$output);
}

def Aten_UpsampleNearest2dBackwardOp
    : Aten_Plain<"upsample_nearest2d_backward",
                 "aten::upsample_nearest2d_backward(%0, $output_size, $input_size, none, none)",
                 "Memory", "gradient of upsample_nearest2d", [Aten_OwnStrides]> {
  let description = [{
    `output_size` is the forward's, `input_size` the shape of its x.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output,
                       DenseI64ArrayAttr:$output_size,
                       DenseI64ArrayAttr:$input_size);
  let results = (outs Aten_FloatTensor:$grad_input);
}

def Aten_UpsampleBilinear2dOp
    : Aten_Plain<"upsample_bilinear2d",
                 "aten::upsample_bilinear2d(%0, $output_size, $align_corners, $scales_h, $scales_w)",
                 "Reduction", "another size, by the four nearest elements",
                 [Aten_Derivative, Aten_OwnCost, Aten_OwnStrides]> {
  let description = [{
    x is [N, C, H, W]. The scales are used for positions where they are given,
    else the ratio of the sizes.

    ```mlir
    %0 = aten.upsample_bilinear2d %x {output_size = array<i64: 4, 4>, align_corners = false} : (tensor<1x3x2x2xf32>) -> tensor<1x3x4x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, DenseI64ArrayAttr:$output_size,
                       BoolAttr:$align_corners, OptionalAttr<F64Attr>:$scales_h,
                       OptionalAttr<F64Attr>:$scales_w);
  let results = (outs Aten_FloatTensor:$output);
}

def Aten_UpsampleBilinear2dBackwardOp
    : Aten_Plain<"upsample_bilinear2d_backward",
                 "aten::upsample_bilinear2d_backward(%0, $output_size, $input_size, $align_corners, $scales_h, $scales_w)",
                 "Reduction", "gradient of upsample_bilinear2d",
                 [Aten_OwnCost, Aten_OwnStrides]> {
  let description = [{
    `output_size` is the forward's, `input_size` the shape of its x.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output,
                       DenseI64ArrayAttr:$output_size,
                       DenseI64ArrayAttr:$input_size, BoolAttr:$align_corners,
                       OptionalAttr<F64Attr>:$scales_h,
                       OptionalAttr<F64Attr>:$scales_w);
  let results = (outs Aten_FloatTensor:$grad_input);
}

#endif // ACCEL_DIALECTS_ATEN_IMAGE_TD
