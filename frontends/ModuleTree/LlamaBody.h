//===- LlamaBody.h - The modules that Llama's descendants share -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// From transformers 5.23: modeling_*.py of each family.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_MODULETREE_LLAMABODY_H
#define ACCEL_FRONTENDS_MODULETREE_LLAMABODY_H

#include "frontends/ModuleTree/SharedParts.h"

namespace accel::moduletree {

/// One body, switched by settings.
inline constexpr const char *llamaBody = R"(
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size] ?!scaled
  embed_tokens $TextScaledWordEmbedding weight[vocab_size,hidden_size] ~embed_scale[]:model ?scaled
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention =qkv ?!fused&&!latent
        o_proj Linear weight[hidden_size,q_size] bias[hidden_size]?o_bias
        q_norm $RMSNorm weight[q_norm_size] ?q_norm_size
        k_norm $RMSNorm weight[k_norm_size] ?k_norm_size
        query_layernorm $RMSNorm weight[head_dim] ?turned_norms
        key_layernorm $RMSNorm weight[head_dim] ?turned_norms
      self_attn $Attention ?fused
        o_proj Linear weight[hidden_size,q_size]
        qkv_proj Linear weight[q_size+2*kv_size,hidden_size]
      self_attn $Attention ?latent
        q_proj Linear weight[q_size,hidden_size] ?!q_lora_rank
        q_a_proj Linear weight[q_lora_rank,hidden_size] bias[q_lora_rank]?attention_bias ?q_lora_rank
        q_a_layernorm $RMSNorm weight[q_lora_rank] ?q_lora_rank
        q_b_proj Linear weight[q_size,q_lora_rank] ?q_lora_rank
        kv_a_proj_with_mqa Linear weight[kv_lora_rank+qk_rope_head_dim,hidden_size] bias[kv_lora_rank+qk_rope_head_dim]?attention_bias
        kv_a_layernorm $RMSNorm weight[kv_lora_rank]
        kv_b_proj Linear weight[num_attention_heads*(qk_nope_head_dim+v_head_dim),kv_lora_rank]
        o_proj Linear weight[hidden_size,num_attention_heads*v_head_dim] bias[hidden_size]?attention_bias
      mlp $MLP =gated ?!fused&&!ungated&&(!experts||only_mlp||dense||(layer+1)%decoder_sparse_step!=0)
      mlp $MLP =gatedfused ?fused
      mlp $MLP ?ungated
        up_proj Linear weight[intermediate_size,hidden_size] bias[intermediate_size]?mlp_bias
        down_proj Linear weight[hidden_size,intermediate_size] bias[hidden_size]?mlp_bias
        act_fn !hidden_act
      mlp $MoE ?grouped&&!dense
        experts $Experts gate_up_proj[experts,2*expert_size,hidden_size] down_proj[experts,hidden_size,expert_size]
          act_fn !hidden_act
        gate $TopkRouter weight[experts,hidden_size] ~e_score_correction_bias[experts]:model ?!wide_choice
        gate $TopkRouter weight[experts,hidden_size] ~e_score_correction_bias[experts] ?wide_choice
        shared_experts $MLP =shared
      mlp $SparseMoeBlock ?experts&&!grouped&&!only_mlp&&(layer+1)%decoder_sparse_step==0
        gate $TopKRouter weight[experts,hidden_size] ?!gate_last
        experts $Experts gate_up_proj[experts,2*expert_size,hidden_size] down_proj[experts,hidden_size,expert_size]
          act_fn !hidden_act
        gate $TopKRouter weight[experts,hidden_size] ?gate_last
        shared_expert $MLP =shared ?shared_size
        shared_expert_gate Linear weight[1,hidden_size] ?shared_size
      input_layernorm $RMSNorm weight[hidden_size] ?!post_norm
      post_attention_layernorm $RMSNorm weight[hidden_size]
      pre_feedforward_layernorm $RMSNorm weight[hidden_size] ?sandwich
      post_feedforward_layernorm $RMSNorm weight[hidden_size] ?sandwich||post_norm
      resid_attn_dropout Dropout ?fused
      resid_mlp_dropout Dropout ?fused
  norm $RMSNorm weight[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary] ?!two_ropes
  rotary_emb $RotaryEmbedding ~sliding_attention_inv_freq[rotary]?any_sliding ~sliding_attention_original_inv_freq[rotary]?any_sliding ~full_attention_inv_freq[rotary]?any_full ~full_attention_original_inv_freq[rotary]?any_full ?two_ropes
shared
  gate_proj Linear weight[shared_size,hidden_size]
  up_proj Linear weight[shared_size,hidden_size]
  down_proj Linear weight[hidden_size,shared_size]
  act_fn !hidden_act
)";

inline constexpr const char *llamaSwitches = R"(
scaled := 0
fused := 0
ungated := 0
latent := 0
grouped := 0
wide_choice := 0
experts := 0
expert_size := 0
shared_size := 0
decoder_sparse_step := 1
gate_last := 0
post_norm := 0
sandwich := 0
two_ropes := 0
q_norm_size := 0
k_norm_size := 0
turned_norms := 0
qkv_bias := 0
o_bias := 0
mlp_bias := 0
nosplit $DecoderLayer
tp
)";

inline constexpr const char *llamaSizes = R"(
num_key_value_heads = num_attention_heads
head_dim = hidden_size/num_attention_heads
)";

inline constexpr const char *llamaDerived = R"(
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
partial_rotary_factor|rope_parameters.partial_rotary_factor = 1
rotary := (head_dim*partial_rotary_factor+1)/2
)";

/// Llama's classes, with what `more` adds.
inline std::vector<const char *>
llamaClasses(std::vector<const char *> more = {}) {
  std::vector<const char *> body = {causalHead, llamaBody, layerParts,
                                    sequenceHead, tokenHead};
  body.insert(body.end(), more.begin(), more.end());
  return body;
}

} // namespace accel::moduletree

#endif // ACCEL_FRONTENDS_MODULETREE_LLAMABODY_H
