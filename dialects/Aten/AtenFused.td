//===- AtenFused.td - Kernels of libraries and compilers ---*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_FUSED_TD
#define ACCEL_DIALECTS_ATEN_FUSED_TD

include "dialects/Aten/AtenBase.td"

def Aten_RotaryOp
    : Aten_Op<"rotary", "fused::rotary(%0, %1, %2, $inverse)", "Pointwise",
              [InferTypeOpAdaptor, Aten_Derivative]> {
  let summary = "rotary position embedding in one kernel";
  let description = [{
    x [B, S, H, D] with the tables of cosines and sines; `inverse` turns back.
    Complex multiplications (torchtitan's apply_rotary_emb) are one of these in fp32.

    ```mlir
    %0 = aten.rotary %x, %cos, %sin, false : (tensor<1x8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>) -> tensor<1x8x2x4xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, Aten_FloatTensor:$cos,
                       Aten_FloatTensor:$sin, BoolAttr:$inverse);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $self `,` $cos `,` $sin `,` $inverse attr-dict `:`
    functional-type(operands, results)
  }];
}

def Aten_SwigluOp
    : Aten_Op<"swiglu", "fused::swiglu(%0, %1)", "Pointwise",
              [SameOperandsAndResultType, Aten_Derivative]> {
  let summary = "silu(gate) * up in one kernel";
  let description = [{
    ```mlir
    %0 = aten.swiglu %gate, %up : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$gate, Aten_FloatTensor:$up);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = "$gate `,` $up attr-dict `:` type($result)";
}

def Aten_SwigluBackwardOp
    : Aten_Op<"swiglu_backward", "fused::swiglu_backward(%0, %1, %2)",
              "Pointwise", [InferTypeOpAdaptor]> {
  let summary = "gradients of gate and up of swiglu";
  let description = [{
    Operands: the output's gradient, gate, up.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$gate,
                       Aten_FloatTensor:$up);
  let results = (outs Aten_FloatTensor:$grad_gate, Aten_FloatTensor:$grad_up);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_DoraNormOp
    : Aten_Op<"dora_norm", "fused::dora_norm(%0, %1, %2, $scale)", "Reduction",
              [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost,
               Aten_OwnWorkspace]> {
  let summary = "norm of each row of weight + scale * up * down";
  let description = [{
    What PEFT's DoRA computes in each forward (get_lora_weight and
    get_weight_norm): `down` [rank, in] and `up` [out, rank] are multiplied out
    by way of an identity matrix [in, in], in their dtype, and the sum with the
    `weight` ([out, in], or [in, out] where `transposed`) has its norms taken.
    Autograd is told that the norms are constant.

    `frame` is what the variables of the layer's forward hold until it returns:
    the product, the identity and the narrow product that its graph saves, and
    the weight in the dtype of `down` where that is another one. `sum` is the sum
    where autograd keeps it, else empty: a transposed weight that is not copied
    becomes a parameter of its own, so that the norm has a graph, which its
    detached result keeps alive.

    ```mlir
    %norm, %frame, %sum = aten.dora_norm %w, %down, %up {scale = 2.0 : f64, transposed = false} : (tensor<8x4xbf16>, tensor<2x4xf32>, tensor<8x2xf32>) -> (tensor<8xf32>, tensor<88xf32>, tensor<0xf32>)
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$weight, Aten_FloatTensor:$down,
                       Aten_FloatTensor:$up, F64Attr:$scale,
                       BoolAttr:$transposed);
  let results = (outs Aten_FloatTensor:$result, Aten_FloatTensor:$frame,
                      Aten_FloatTensor:$sum);
  let assemblyFormat = [{
    $weight `,` $down `,` $up attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_HoldOp
    : Aten_Op<"hold", "fused::hold(%0, %1, $saved)", "View",
              [InferTypeOpAdaptor, Aten_Derivative]> {
  let summary = "a value, until which another one is held";
  let description = [{
    The result is `self`. A variable of the module's forward holds `held` so
    long; autograd holds it until the backward of `self` where it is `saved`.

    ```mlir
    %0 = aten.hold %x, %product, false : (tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$held, BoolAttr:$saved);
  let results = (outs Aten_Tensor:$result);
  let assemblyFormat = [{
    $self `,` $held `,` $saved attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_CrossEntropyOp
    : Aten_Op<"cross_entropy",
              "fused::cross_entropy(%0, %1, $ignore_index, $in_place)",
              "Reduction", [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost]> {
  let summary = "mean cross-entropy of logits in one kernel, fp32 inside";
  let description = [{
    Of logits [T, V] in any precision and targets [T]: the mean loss in fp32 and
    the log-sum-exp of each row. A target that is neither a class nor
    `ignore_index` is another rank's: its row counts, and has no target's logit.
    As torch.compile fuses log_softmax and
    nll_loss; with `in_place` as flash-attn's CrossEntropyLoss with
    inplace_backward, whose gradient overwrites the logits.
  }];
  let arguments = (ins Aten_FloatTensor:$logits, Aten_IntTensor:$targets,
                       I64Attr:$ignore_index, BoolAttr:$in_place);
  let results = (outs Aten_FloatTensor:$loss, Aten_FloatTensor:$sums);
  let assemblyFormat = [{
    $logits `,` $targets attr-dict `:` functional-type(operands, results)
  }];
}

/// Reads each logit and writes its gradient.
class Aten_CrossEntropyBackward<string mnemonic, string category, string what>
    : Aten_Op<mnemonic, "fused::" # mnemonic # "(%0, %1, %2, %3, $ignore_index)",
              category, [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = what;
  let description = [{
    Operands: the logits, the loss's gradient, the targets, the log-sum-exps.
  }];
  let arguments = (ins Aten_FloatTensor:$logits, Aten_FloatTensor:$grad_out,
                       Aten_IntTensor:$targets, Aten_FloatTensor:$sums,
                       I64Attr:$ignore_index);
  let results = (outs Aten_FloatTensor:$grad_logits);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_CrossEntropyBackwardOp
    : Aten_CrossEntropyBackward<"cross_entropy_backward", "Reduction",
                                "gradient of cross_entropy">;
/// Its result lies where the logits were.
def Aten_CrossEntropyInPlaceBackwardOp
    : Aten_CrossEntropyBackward<"cross_entropy_in_place_backward", "View",
                                "gradient of cross_entropy over the logits">;

#endif // ACCEL_DIALECTS_ATEN_FUSED_TD
