//===- AtenLora.td - Adapters in autograd functions --------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_LORA_TD
#define ACCEL_DIALECTS_ATEN_LORA_TD

include "dialects/Aten/AtenBase.td"

def Aten_AlphaMmOp
    : Aten_Op<"alpha_mm", "fused::alpha_mm(%0, %1, $alpha)", "Matmul",
              [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = "matmul times a number";
  let description = [{
    `out.addmm_(a, b, alpha=alpha, beta=0)` of a tensor without values.

    ```mlir
    %0 = aten.alpha_mm %a, %b {alpha = 2.0 : f64} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$mat2,
                       F64Attr:$alpha);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $self `,` $mat2 attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_AlphaAddmmOp
    : Aten_Op<"alpha_addmm", "aten::addmm(%0, %1, %2, 1, $alpha)", "Matmul",
              [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = "self + alpha * matmul";
  let description = [{
    It writes over `self` where a matmul or zeros made that for it alone
    (InPlace.h).

    ```mlir
    %0 = aten.alpha_addmm %y, %a, %b {alpha = 2.0 : f64} : (tensor<2x4xf32>, tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$mat1,
                       Aten_FloatTensor:$mat2, F64Attr:$alpha);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $self `,` $mat1 `,` $mat2 attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_GegluOp
    : Aten_Op<"geglu", "fused::geglu(%0, %1)", "Pointwise",
              [SameOperandsAndResultType]> {
  let summary = "gelu(gate) * up in one kernel";
  let description = [{
    ```mlir
    %0 = aten.geglu %gate, %up : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$gate, Aten_FloatTensor:$up);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = "$gate `,` $up attr-dict `:` type($result)";
}

def Aten_GluInPlaceBackwardOp
    : Aten_Op<"glu_in_place_backward",
              "fused::glu_in_place_backward(%0, %1, %2, $gelu)", "View",
              [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = "gradients of swiglu or geglu over what they are computed of";
  let description = [{
    Operands: the output's gradient, gate, up. The recomputed output overwrites its
    gradient, and the gradients of gate and up overwrite gate and up
    (axolotl/kernels/swiglu.py, swiglu_backward; geglu.py).
  }];
  let arguments = (ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$gate,
                       Aten_FloatTensor:$up, BoolAttr:$gelu);
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$grad_gate,
                      Aten_FloatTensor:$grad_up);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_LoraProjectionsOp
    : Aten_Op<"lora_projections", "fused::lora_projections(%0*)", "View",
              [InferTypeOpAdaptor, Aten_Derivative]> {
  let summary = "linear layers of one input, each with a LoRA, as one function";
  let description = [{
    What an autograd function returns that computed n such layers
    (axolotl/kernels/lora.py: LoRA_QKV, LoRA_O, LoRA_FusedProj), for n =
    the number of `scales`. `values`: what the operations before computed in its
    forward, n matrices [T, out], which the results are; the input [T, in], and
    the same with dropout (the input itself where there is none); n weights [out,
    in], n matrices A [rank, in] and n matrices B [out, rank]. Its backward is the
    function's: it reads the inputs, A and B, which are saved, and the weights.

    ```mlir
    %0 = aten.lora_projections %y, %x, %x, %w, %a, %b {scales = array<f64: 2.0>} : (tensor<8x4xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>, tensor<2x6xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Variadic<Aten_FloatTensor>:$values,
                       DenseF64ArrayAttr:$scales);
  let results = (outs Variadic<Aten_FloatTensor>:$outputs);
  let assemblyFormat = [{
    $values attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_LoraMlpOp
    : Aten_Op<"lora_mlp", "fused::lora_mlp(%0*)", "View",
              [InferTypeOpAdaptor, Aten_Derivative]> {
  let summary = "a gated MLP whose layers have LoRAs, as one function";
  let description = [{
    What an autograd function returns that computed an MLP (axolotl's LoRA_MLP).
    `values`: the output [T, hidden], which the result is; the input and the same
    with dropout; what its gate and up layers gave, [T, inner]; then the weights,
    the matrices A and the matrices B of gate, up and down. The backward
    recomputes the activation in place of its gradient (`glu_in_place_backward`).
  }];
  let arguments = (ins Variadic<Aten_FloatTensor>:$values,
                       DenseF64ArrayAttr:$scales, BoolAttr:$gelu);
  let results = (outs Aten_FloatTensor:$output);
  let assemblyFormat = [{
    $values attr-dict `:` functional-type(operands, results)
  }];
}

#endif // ACCEL_DIALECTS_ATEN_LORA_TD
