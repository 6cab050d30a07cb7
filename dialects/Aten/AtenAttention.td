//===- AtenAttention.td - Attention and its parts ----------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_ATTENTION_TD
#define ACCEL_DIALECTS_ATEN_ATTENTION_TD

include "dialects/Aten/AtenBase.td"

def Aten_ScaledDotProductAttentionOp
    : Aten_Op<"scaled_dot_product_attention", "", "Attention",
              [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = "softmax(q kT * scale) v, not yet a kernel";
  let description = [{
    q is [B, H, S, D], k [B, G, T, D] and v [B, G, T, V] where G divides H
    (grouped queries: G heads serve H); the result is [B, H, S, V].
    `select-kernels` replaces it.

    `mask` is added to the scaled scores: [B or 1, H or 1, S or 1, T], in the
    element type of q or in fp32. With a `window` above 0 a query sees that many
    keys, itself the last. With a `softcap` c above 0 scaled scores become
    c tanh(score / c) before any mask. `by_parts` says that transformers runs
    single matmuls here and no kernel: what its own modules are judged by.
    With a `dropout_p` above 0 attention weights are dropped by `dropout_key`,
    as `aten.dropout` drops.

    ```mlir
    %0 = aten.scaled_dot_product_attention %q, %k, %v {is_causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$query, Aten_FloatTensor:$key,
                       Aten_FloatTensor:$value,
                       Optional<Aten_FloatTensor>:$mask, BoolAttr:$is_causal,
                       F64Attr:$scale, DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap,
                       UnitAttr:$by_parts,
                       DefaultValuedAttr<F64Attr, "0.0">:$dropout_p,
                       DefaultValuedAttr<I64Attr, "-1">:$dropout_key);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

/// Kernels that add a mask to the scores.
def Aten_AddedMask {
  dag argument = (ins Optional<Aten_FloatTensor>:$mask);
}

class Aten_AttentionForward<string mnemonic, string aten, string what,
                            list<Trait> traits = [], dag mask = (ins)>
    : Aten_Op<mnemonic, aten, "Attention",
              !listconcat([InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost],
                          traits)> {
  let summary = what;
  let description = [{
    Returns the output, laid out in memory as [B, S, H, D], and the log-sum-exp
    of each row's scores in fp32. A mask, where the kernel takes one, is added
    to the scores; only the memory-efficient kernel has a gradient of it.
  }];
  let arguments = !con((ins Aten_FloatTensor:$query, Aten_FloatTensor:$key,
                            Aten_FloatTensor:$value), mask,
                       (ins BoolAttr:$is_causal, F64Attr:$scale));
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$logsumexp);
  let assemblyFormat = "$query `,` $key `,` $value " #
      !if(!empty(mask), "", "(`mask` $mask^)? ") #
      "attr-dict `:` functional-type(operands, results)";
}

class Aten_AttentionBackward<string mnemonic, string aten, string what,
                             list<Trait> traits = [], dag mask = (ins)>
    : Aten_Op<mnemonic, aten, "Attention",
              !listconcat([InferTypeOpAdaptor, Aten_OwnCost], traits)> {
  let summary = what;
  let description = [{
    Returns the gradients of q, k and v.
  }];
  let arguments = !con((ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$query,
                       Aten_FloatTensor:$key, Aten_FloatTensor:$value,
                       Aten_FloatTensor:$out, Aten_FloatTensor:$logsumexp),
                       mask, (ins BoolAttr:$is_causal, F64Attr:$scale));
  let results = (outs Aten_FloatTensor:$grad_query, Aten_FloatTensor:$grad_key,
                      Aten_FloatTensor:$grad_value);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_FlashAttentionForCpuOp : Aten_AttentionForward<
    "_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention_for_cpu(%0, %1, %2, 0.0, $is_causal, %3?, $scale)",
    "flash attention on CPUs", [Aten_OwnWorkspace], Aten_AddedMask.argument>;
def Aten_FlashAttentionForCpuBackwardOp : Aten_AttentionBackward<
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward(%0, %1, %2, %3, %4, %5, 0.0, $is_causal, %6?, $scale)",
    "gradient of flash attention on CPUs", [Aten_OwnWorkspace],
    Aten_AddedMask.argument>;

def Aten_FlashAttentionOp : Aten_AttentionForward<
    "_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention(%0, %1, %2, 0.0, $is_causal, false, $scale) -> 9",
    "flash attention on CUDA, bf16 and fp16">;
def Aten_FlashAttentionBackwardOp : Aten_AttentionBackward<
    "_scaled_dot_product_flash_attention_backward",
    "aten::_scaled_dot_product_flash_attention_backward(%0, %1, %2, %3, %4, %5, none, none, #query, #key, 0.0, $is_causal, none, none, $scale)",
    "gradient of flash attention on CUDA">;

/// Fewer key heads than query heads are taken from torch 2.14 on; plans of
/// accel-run, which may be built against an older one, repeat them.
def Aten_EfficientAttentionOp : Aten_AttentionForward<
    "_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_efficient_attention(%0, %1, %2, %3?, true, 0.0, $is_causal, $scale) -> 4",
    "memory-efficient attention on CUDA, any floating point",
    [], Aten_AddedMask.argument>;
def Aten_EfficientAttentionBackwardOp : Aten_AttentionBackward<
    "_scaled_dot_product_efficient_attention_backward",
    "aten::_scaled_dot_product_efficient_attention_backward(%0, %1, %2, %3, %6?, %4, %5, none, none, 0.0, [true, true, true, false], $is_causal, $scale) -> 4",
    "gradient of memory-efficient attention", [], Aten_AddedMask.argument>;

/// The same where the mask is trained: a bias by relative positions.
def Aten_EfficientAttentionMaskBackwardOp
    : Aten_Op<"_scaled_dot_product_efficient_attention_mask_backward",
              "aten::_scaled_dot_product_efficient_attention_backward(%0, %1, %2, %3, %4, %5, %6, none, none, 0.0, [true, true, true, true], $is_causal, $scale) -> 4",
              "Attention", [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = "gradient of memory-efficient attention and of its mask";
  let description = [{
    Returns the gradients of q, k, v and of the mask, which has the shape of the
    scores.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$query,
                       Aten_FloatTensor:$key, Aten_FloatTensor:$value,
                       Aten_FloatTensor:$mask, Aten_FloatTensor:$out,
                       Aten_FloatTensor:$logsumexp, BoolAttr:$is_causal,
                       F64Attr:$scale);
  let results = (outs Aten_FloatTensor:$grad_query, Aten_FloatTensor:$grad_key,
                      Aten_FloatTensor:$grad_value, Aten_FloatTensor:$grad_mask);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_CudnnAttentionOp : Aten_AttentionForward<
    "_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_cudnn_attention(%0, %1, %2, %3?, true, 0.0, $is_causal, false, $scale) -> 9",
    "cuDNN's attention, bf16 and fp16; as the query lies in memory",
    [], Aten_AddedMask.argument>;
/// It wants a state of the generator on the device, which nothing reads where
/// nothing is dropped: the statistics stand there.
def Aten_CudnnAttentionBackwardOp : Aten_AttentionBackward<
    "_scaled_dot_product_cudnn_attention_backward",
    "aten::_scaled_dot_product_cudnn_attention_backward(%0, %1, %2, %3, %4, %5, %5, %5, %6?, none, none, #query, #key, 0.0, $is_causal, $scale)",
    "gradient of cuDNN's attention", [], Aten_AddedMask.argument>;

/// What scaled_dot_product_attention takes no window for, in the order of the
/// kernel's memory.
def Aten_WindowAttentionOp
    : Aten_Op<"_flash_attention_forward",
              "aten::_flash_attention_forward(%0, %1, %2, none, none, #query.1, #key.1, 0.0, true, false, $scale, $before, 0) -> 5",
              "Attention", [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost]> {
  let summary = "flash attention on CUDA to the keys of a window, bf16 and fp16";
  let description = [{
    q is [B, S, H, D]; k and v are [B, T, G, D] where G divides H. A query sees
    itself and `before` keys before it. Returns the output and the log-sum-exp
    of each row's scores in fp32, [B, H, S].

    ```mlir
    %0, %1 = aten._flash_attention_forward %q, %k, %v {before = 3, scale = 2.5e-01 : f64} : (tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x2x16xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>)
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$query, Aten_FloatTensor:$key,
                       Aten_FloatTensor:$value, I64Attr:$before,
                       F64Attr:$scale);
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$logsumexp);
  let assemblyFormat = "$query `,` $key `,` $value attr-dict `:` "
                       "functional-type(operands, results)";
}

def Aten_WindowAttentionBackwardOp
    : Aten_Op<"_flash_attention_backward",
              "aten::_flash_attention_backward(%0, %1, %2, %3, %4, %5, none, none, #query.1, #key.1, 0.0, true, none, none, $scale, $before, 0)",
              "Attention", [InferTypeOpAdaptor, Aten_OwnCost]> {
  let summary = "gradient of flash attention to the keys of a window";
  let description = [{
    Returns the gradients of q, k and v.
  }];
  let arguments = (ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$query,
                       Aten_FloatTensor:$key, Aten_FloatTensor:$value,
                       Aten_FloatTensor:$out, Aten_FloatTensor:$logsumexp,
                       I64Attr:$before, F64Attr:$scale);
  let results = (outs Aten_FloatTensor:$grad_query, Aten_FloatTensor:$grad_key,
                      Aten_FloatTensor:$grad_value);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

#endif // ACCEL_DIALECTS_ATEN_ATTENTION_TD
