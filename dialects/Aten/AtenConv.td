//===- AtenConv.td - Convolution ---------------------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_CONV_TD
#define ACCEL_DIALECTS_ATEN_CONV_TD

include "dialects/Aten/AtenBase.td"

def Aten_ConvolutionOp
    : Aten_Plain<"convolution",
                 "aten::convolution(%0, %1, %2?, $stride, $padding, $dilation, $transposed, $output_padding, $groups)",
                 "Matmul", "convolution over one to three dimensions",
                 [Aten_Derivative, Aten_OwnCost, Aten_OwnStrides]> {
  let description = [{
    The operands are x [N, C, ...], the weight [O, C / groups, ...] (transposed:
    [C, O / groups, ...]) and, where there is one, the bias [O]. The lists have
    one entry for each dimension behind the channels.

    ```mlir
    %0 = aten.convolution %x, %w {stride = array<i64: 2>, padding = array<i64: 1>, dilation = array<i64: 1>, transposed = false, output_padding = array<i64: 0>, groups = 1 : i64} : (tensor<2x8x16xf32>, tensor<4x8x3xf32>) -> tensor<2x4x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$input, Aten_FloatTensor:$weight,
                       Optional<Aten_FloatTensor>:$bias,
                       DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding,
                       DenseI64ArrayAttr:$dilation, BoolAttr:$transposed,
                       DenseI64ArrayAttr:$output_padding, I64Attr:$groups);
  let results = (outs Aten_FloatTensor:$result);
}

def Aten_ConvolutionBackwardOp
    : Aten_Plain<"convolution_backward",
                 "aten::convolution_backward(%0, %1, %2, $bias_sizes, $stride, $padding, $dilation, $transposed, $output_padding, $groups, $output_mask) -> 3 by output_mask",
                 "Matmul", "gradients of convolution",
                 [Aten_OwnCost, Aten_OwnStrides]> {
  let description = [{
    Operands: the output's gradient, x and the weight. Results: those gradients of
    x, weight and bias that `output_mask` asks for.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_FloatTensor:$input,
                       Aten_FloatTensor:$weight,
                       OptionalAttr<DenseI64ArrayAttr>:$bias_sizes,
                       DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding,
                       DenseI64ArrayAttr:$dilation, BoolAttr:$transposed,
                       DenseI64ArrayAttr:$output_padding, I64Attr:$groups,
                       DenseBoolArrayAttr:$output_mask);
  let results = (outs Variadic<Aten_FloatTensor>:$gradients);
}

#endif // ACCEL_DIALECTS_ATEN_CONV_TD
