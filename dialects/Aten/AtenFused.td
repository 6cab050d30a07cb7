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
              [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnStrides]> {
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

//===----------------------------------------------------------------------===//
// Mamba-2
//===----------------------------------------------------------------------===//

/// Sizes of a mixer: heads of `head_dim`, of which groups share B and C of
/// `state` elements, scanned by chunks of `chunk` tokens.
def Aten_Mamba2Sizes {
  dag attributes = (ins I64Attr:$head_dim, I64Attr:$state, I64Attr:$chunk,
                        F64Attr:$eps, F64Attr:$step_min);
}

def Aten_Mamba2MixerOp
    : Aten_Op<"mamba2_mixer",
              "fused::mamba2_mixer(%0, %1, %2, %3, %4, %5, %6, $groups, $head_dim, $state, $chunk, $eps, $step_min)",
              "Attention",
              [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost,
               Aten_OwnWorkspace]> {
  let summary = "convolution, scan and gated norm of a Mamba-2 mixer";
  let description = [{
    mamba_ssm's `mamba_split_conv1d_scan_combined` between a mixer's two
    projections. `projected` [B, S, P] has the gate z, the input x, B, C and the
    steps of each head. x, B and C pass a causal convolution and silu; the scan
    of Dao and Gu (arXiv:2405.21060, section 6) runs by chunks, with A =
    -exp(`decay`) and steps softplus(step + `step_bias`) of `step_min` at least;
    `skip` times x is added; then times silu(z) and an RMS norm of each group.

    Its autograd function saves `projected`, the scan's output and the norm's
    1 / rms [B, S, groups], and makes all else again in its backward.

    ```mlir
    %y, %scanned, %rstd = aten.mamba2_mixer %x, %conv, %bias, %step, %decay, %skip, %norm {chunk = 16 : i64, eps = 1.0e-05 : f64, groups = 2 : i64, head_dim = 4 : i64, state = 8 : i64, step_min = 1.0e-03 : f64} : (tensor<1x32x68xf32>, tensor<48x1x4xf32>, tensor<48xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xf32>) -> (tensor<1x32x16xf32>, tensor<1x32x16xf32>, tensor<1x32x2xf32>)
    ```
  }];
  let arguments = !con((ins Aten_FloatTensor:$projected,
                            Aten_FloatTensor:$conv_weight,
                            Aten_FloatTensor:$conv_bias,
                            Aten_FloatTensor:$step_bias,
                            Aten_FloatTensor:$decay, Aten_FloatTensor:$skip,
                            Aten_FloatTensor:$norm_weight),
                       (ins I64Attr:$groups), Aten_Mamba2Sizes.attributes);
  let results = (outs Aten_FloatTensor:$result, Aten_FloatTensor:$scanned,
                      Aten_FloatTensor:$rstd);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_Mamba2MixerBackwardOp
    : Aten_Op<"mamba2_mixer_backward",
              "fused::mamba2_mixer_backward(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, $head_dim, $state, $chunk, $eps, $step_min)",
              "Attention",
              [InferTypeOpAdaptor, Aten_OwnCost, Aten_OwnWorkspace]> {
  let summary = "gradients of mamba2_mixer";
  let description = [{
    Operands: the result's gradient, those of the forward, and what it saves.
    Gradients of the forward's operands, in their order.
  }];
  let arguments = !con((ins Aten_FloatTensor:$grad_out,
                            Aten_FloatTensor:$projected,
                            Aten_FloatTensor:$conv_weight,
                            Aten_FloatTensor:$conv_bias,
                            Aten_FloatTensor:$step_bias,
                            Aten_FloatTensor:$decay, Aten_FloatTensor:$skip,
                            Aten_FloatTensor:$norm_weight,
                            Aten_FloatTensor:$scanned,
                            Aten_FloatTensor:$rstd),
                       Aten_Mamba2Sizes.attributes);
  let results = (outs Aten_FloatTensor:$grad_projected,
                      Aten_FloatTensor:$grad_conv_weight,
                      Aten_FloatTensor:$grad_conv_bias,
                      Aten_FloatTensor:$grad_step_bias,
                      Aten_FloatTensor:$grad_decay, Aten_FloatTensor:$grad_skip,
                      Aten_FloatTensor:$grad_norm_weight);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Gated delta rule
//===----------------------------------------------------------------------===//

def Aten_GatedDeltaRuleOp
    : Aten_Op<"gated_delta_rule",
              "fused::gated_delta_rule(%0, %1, %2, $key_heads, $key_dim, $cast)",
              "Attention",
              [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost,
               Aten_OwnWorkspace]> {
  let summary = "gated delta rule over chunks of 64 tokens";
  let description = [{
    transformers' `torch_chunk_gated_delta_rule` (arXiv:2412.06464), a loop over
    chunks of single operators in fp32. `mixed` [B, S, C] has queries and keys
    of `key_heads` and values; `decay` and `beta` [B, S, H] have a number for
    each head of values. With `cast` its matmuls take operands of the type of
    `mixed`, as under torch.autocast.

    `saved` [B, M] stands for all that autograd keeps, in fp32 numbers.

    ```mlir
    %0:2 = aten.gated_delta_rule %x, %g, %b {cast = false, key_dim = 8 : i64, key_heads = 2 : i64} : (tensor<1x64x64xf32>, tensor<1x64x4xf32>, tensor<1x64x4xf32>) -> (tensor<1x64x32xf32>, tensor<1x106244xf32>)
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$mixed, Aten_FloatTensor:$decay,
                       Aten_FloatTensor:$beta, I64Attr:$key_heads,
                       I64Attr:$key_dim, BoolAttr:$cast);
  let results = (outs Aten_FloatTensor:$result, Aten_FloatTensor:$saved);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_GatedDeltaRuleBackwardOp
    : Aten_Op<"gated_delta_rule_backward",
              "fused::gated_delta_rule_backward(%0, %1, $heads, $key_heads, $key_dim, $cast)",
              "Attention",
              [InferTypeOpAdaptor, Aten_OwnCost, Aten_OwnWorkspace]> {
  let summary = "gradients of gated_delta_rule";
  let description = [{
    Operands: the result's gradient [B, S, heads * size] and what the forward
    saved. Gradients of the forward's operands, in their order.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$saved,
                       I64Attr:$heads, I64Attr:$key_heads, I64Attr:$key_dim,
                       BoolAttr:$cast);
  let results = (outs Aten_FloatTensor:$grad_mixed,
                      Aten_FloatTensor:$grad_decay,
                      Aten_FloatTensor:$grad_beta);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

#endif // ACCEL_DIALECTS_ATEN_FUSED_TD
