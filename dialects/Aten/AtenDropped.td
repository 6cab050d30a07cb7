//===- AtenDropped.td - Attention that drops weights -------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// CUDA's kernels draw the weights that they drop where they make them, so that
// no [S, T] scores are kept; accel-run gives their generator the state that the
// key says before the forward, and the backward the same state
// (runtime/execute/DroppedAttention.h).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_DROPPED_TD
#define ACCEL_DIALECTS_ATEN_DROPPED_TD

include "dialects/Aten/AtenBase.td"

class Aten_DroppedAttentionForward<string mnemonic, string call, string what,
                                   dag mask = (ins)>
    : Aten_Op<mnemonic, call, "Attention",
              [InferTypeOpAdaptor, Aten_Derivative, Aten_OwnCost,
               Aten_OwnStrides]> {
  let summary = what;
  let description = [{
    As the operation without dropout, whose results it has, but weights are 0
    with probability `dropout_p`, else divided by 1 - `dropout_p`. Which ones
    stay is a function of the position in this call's tensors and of
    `dropout_key`. On a part of the heads a rank draws by its place along the
    axes that shard them too (`aten.own_key`), so that meshes drop other weights;
    batches and tokens are whole.
  }];
  let arguments = !con((ins Aten_FloatTensor:$query, Aten_FloatTensor:$key,
                            Aten_FloatTensor:$value), mask,
                       (ins BoolAttr:$is_causal, F64Attr:$scale,
                            F64Attr:$dropout_p, I64Attr:$dropout_key));
  let results = (outs Aten_FloatTensor:$output, Aten_FloatTensor:$logsumexp);
  let assemblyFormat = "$query `,` $key `,` $value " #
      !if(!empty(mask), "", "(`mask` $mask^)? ") #
      "attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

class Aten_DroppedAttentionBackward<string mnemonic, string call, string what,
                                    dag mask = (ins)>
    : Aten_Op<mnemonic, call, "Attention",
              [InferTypeOpAdaptor, Aten_OwnCost, Aten_OwnStrides]> {
  let summary = what;
  let description = [{
    Returns the gradients of q, k and v. It drops what the forward with the same
    key dropped.
  }];
  let arguments = !con((ins Aten_FloatTensor:$grad_out, Aten_FloatTensor:$query,
                       Aten_FloatTensor:$key, Aten_FloatTensor:$value,
                       Aten_FloatTensor:$out, Aten_FloatTensor:$logsumexp),
                       mask, (ins BoolAttr:$is_causal, F64Attr:$scale,
                                  F64Attr:$dropout_p, I64Attr:$dropout_key));
  let results = (outs Aten_FloatTensor:$grad_query, Aten_FloatTensor:$grad_key,
                      Aten_FloatTensor:$grad_value);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_DroppedFlashAttentionOp : Aten_DroppedAttentionForward<
    "dropped_flash_attention",
    "accel::flash_attention(%0, %1, %2, $is_causal, $scale, $dropout_p, @dropout_key)",
    "flash attention on CUDA that drops weights, bf16 and fp16">;
def Aten_DroppedFlashAttentionBackwardOp : Aten_DroppedAttentionBackward<
    "dropped_flash_attention_backward",
    "accel::flash_attention_backward(%0, %1, %2, %3, %4, %5, $is_causal, $scale, $dropout_p, @dropout_key)",
    "gradient of flash attention that drops weights">;
def Aten_DroppedEfficientAttentionOp : Aten_DroppedAttentionForward<
    "dropped_efficient_attention",
    "accel::efficient_attention(%0, %1, %2, %3?, $is_causal, $scale, $dropout_p, @dropout_key)",
    "memory-efficient attention on CUDA that drops weights, any floating point",
    (ins Optional<Aten_FloatTensor>:$mask)>;
def Aten_DroppedEfficientAttentionBackwardOp : Aten_DroppedAttentionBackward<
    "dropped_efficient_attention_backward",
    "accel::efficient_attention_backward(%0, %1, %2, %3, %4, %5, %6?, $is_causal, $scale, $dropout_p, @dropout_key)",
    "gradient of memory-efficient attention that drops weights",
    (ins Optional<Aten_FloatTensor>:$mask)>;

#endif // ACCEL_DIALECTS_ATEN_DROPPED_TD
