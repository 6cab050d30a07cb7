//===- HybridFamilies.cpp - Models of recurrent layers, as data -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Models whose layers are of several kinds, Mamba-2 or gated delta rules among
// them. From transformers 5.23, like LlamaFamilies.cpp.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/SharedParts.h"

namespace accel::moduletree {

namespace {

const std::vector<const char *> nemotronH = {R"(
vocab_size = 131072
hidden_size = 4096
num_attention_heads = 32
num_key_value_heads ?= 8 num_attention_heads
head_dim = 128
max_position_embeddings = 4096
intermediate_size = 21504
text mlp_hidden_act = relu2
text mamba_hidden_act = silu
mlp_bias = 0
use_bias = 0
ssm_state_size = 128
mamba_num_heads = 128
mamba_head_dim = 64
mamba_n_groups|n_groups = 8
mamba_d_conv|conv_kernel = 4
mamba_conv_bias|use_conv_bias = 1
mamba_chunk_size|chunk_size = 128
inner := mamba_num_heads*mamba_head_dim
channels := inner+2*mamba_n_groups*ssm_state_size
projected := inner+channels+mamba_num_heads
n_routed_experts|num_local_experts = 8
num_experts_per_tok = 2
moe_intermediate_size = 7688
moe_shared_expert_intermediate_size = 7688
moe_latent_size ?= 0
expert_width := moe_latent_size?moe_latent_size:hidden_size
n_group = 1
topk_group = 1
norm_topk_prob = 1
routed_scaling_factor = 1
rescale_prenorm_residual = 1
blocks layers_block_type|layer_types hybrid_override_pattern ME*- mamba:M:linear_attention:mamba attention:*:full_attention:attention mlp:-:mlp moe:E:moe
nosplit $Block
tp
)"};

constexpr const char *nemotronHBody = R"(
$ForCausalLM
  @base %
  @output lm_head
  % $Model
  lm_head Linear weight[vocab_size,hidden_size]
$Model
  @auto
  @input embeddings
  embeddings Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $Block
      norm $RMSNorm weight[hidden_size]
      mixer $Mamba2Mixer dt_bias[mamba_num_heads] A_log[mamba_num_heads] D[mamba_num_heads] ?mamba
        act !mamba_hidden_act
        conv1d Conv1d weight[channels,1,mamba_d_conv] bias[channels]?mamba_conv_bias
        in_proj Linear weight[projected,hidden_size] bias[projected]?use_bias
        norm $RMSNormGated weight[inner]
        out_proj Linear weight[hidden_size,inner] bias[hidden_size]?use_bias
      mixer $Attention ?attention
        q_proj Linear weight[num_attention_heads*head_dim,hidden_size]
        k_proj Linear weight[num_key_value_heads*head_dim,hidden_size]
        v_proj Linear weight[num_key_value_heads*head_dim,hidden_size]
        o_proj Linear weight[hidden_size,num_attention_heads*head_dim]
      mixer $MLP ?mlp
        up_proj Linear weight[intermediate_size,hidden_size] bias[intermediate_size]?mlp_bias
        down_proj Linear weight[hidden_size,intermediate_size] bias[hidden_size]?mlp_bias
        act_fn !mlp_hidden_act
      mixer $MoE ?moe
        experts $Experts up_proj[n_routed_experts,moe_intermediate_size,expert_width] down_proj[n_routed_experts,expert_width,moe_intermediate_size]
          act_fn !mlp_hidden_act
        gate $TopkRouter weight[n_routed_experts,hidden_size] ~e_score_correction_bias[n_routed_experts]
        shared_experts $MLP
          up_proj Linear weight[moe_shared_expert_intermediate_size,hidden_size] bias[moe_shared_expert_intermediate_size]?mlp_bias
          down_proj Linear weight[hidden_size,moe_shared_expert_intermediate_size] bias[hidden_size]?mlp_bias
          act_fn !mlp_hidden_act
        fc1_latent_proj Linear weight[moe_latent_size,hidden_size] bias[moe_latent_size]?mlp_bias ?moe_latent_size
        fc2_latent_proj Linear weight[hidden_size,moe_latent_size] bias[hidden_size]?mlp_bias ?moe_latent_size
        fc1_latent_proj Identity ?!moe_latent_size
        fc2_latent_proj Identity ?!moe_latent_size
  norm_f $RMSNorm weight[hidden_size]
)";

/// What layers of a gated delta rule add (arXiv:2412.06464), and which layers
/// they are.
constexpr const char *deltaSizes = R"(
max_position_embeddings = 32768
tie_word_embeddings = 0
text hidden_act = silu
attention_bias = 0
head_dim = 256
partial_rotary_factor|rope_parameters.partial_rotary_factor = 0.25
rotary := (head_dim*partial_rotary_factor+1)/2
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
linear_conv_kernel_dim = 4
linear_key_head_dim = 128
linear_value_head_dim = 128
linear_num_key_heads = 16
linear_num_value_heads = 32
key_size := linear_num_key_heads*linear_key_head_dim
value_size := linear_num_value_heads*linear_value_head_dim
full_attention_interval = 4
mixers layer_types (layer+1)%full_attention_interval linear:linear_attention attention:full_attention
experts := 0
shared_size := 0
mlp_bias := 0
decoder_sparse_step := 1
tp
)";

const std::vector<const char *> qwen35 = {R"(
vocab_size = 248320
hidden_size = 4096
intermediate_size = 12288
num_hidden_layers = 32
num_attention_heads = 16
num_key_value_heads = 4
)",
                                          deltaSizes, R"(
joined := 0
nosplit $DecoderLayer $VisionBlock
)"};

const std::vector<const char *> qwen35Moe = {R"(
vocab_size = 248320
hidden_size = 2048
intermediate_size := 0
num_hidden_layers = 40
num_attention_heads = 16
num_key_value_heads = 2
)",
                                             deltaSizes, R"(
joined := 0
experts|num_experts|num_local_experts = 256
num_experts_per_tok = 8
expert_size|moe_intermediate_size = 512
shared_size|shared_expert_intermediate_size = 512
nosplit $DecoderLayer $VisionBlock
)"};

const std::vector<const char *> qwen3Next = {R"(
vocab_size = 151936
hidden_size = 2048
intermediate_size = 5632
num_hidden_layers = 48
num_attention_heads = 16
num_key_value_heads = 2
)",
                                             deltaSizes, R"(
joined := 1
experts|num_experts|num_local_experts = 512
num_experts_per_tok = 10
decoder_sparse_step = 1
expert_size|moe_intermediate_size = 512
shared_size|shared_expert_intermediate_size = 512
nosplit $DecoderLayer
)"};

constexpr const char *deltaLayers = R"(
layers
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      linear_attn $GatedDeltaNet dt_bias[linear_num_value_heads] A_log[linear_num_value_heads] ?linear
        conv1d Conv1d weight[2*key_size+value_size,1,linear_conv_kernel_dim]
        in_proj_qkvz Linear weight[2*key_size+2*value_size,hidden_size] ?joined
        in_proj_ba Linear weight[2*linear_num_value_heads,hidden_size] ?joined
        norm $RMSNormGated weight[linear_value_head_dim]
        out_proj Linear weight[hidden_size,value_size]
        in_proj_qkv Linear weight[2*key_size+value_size,hidden_size] ?!joined
        in_proj_z Linear weight[value_size,hidden_size] ?!joined
        in_proj_b Linear weight[linear_num_value_heads,hidden_size] ?!joined
        in_proj_a Linear weight[linear_num_value_heads,hidden_size] ?!joined
      self_attn $Attention ?attention
        q_proj Linear weight[2*q_size,hidden_size] bias[2*q_size]?attention_bias
        k_proj Linear weight[kv_size,hidden_size] bias[kv_size]?attention_bias
        v_proj Linear weight[kv_size,hidden_size] bias[kv_size]?attention_bias
        o_proj Linear weight[hidden_size,q_size] bias[hidden_size]?attention_bias
        q_norm $RMSNorm weight[head_dim]
        k_norm $RMSNorm weight[head_dim]
      mlp $MLP =gated ?!experts||only_mlp||(layer+1)%decoder_sparse_step!=0
      mlp $SparseMoeBlock ?experts&&!only_mlp&&(layer+1)%decoder_sparse_step==0
        gate $TopKRouter weight[experts,hidden_size]
        experts $Experts gate_up_proj[experts,2*expert_size,hidden_size] down_proj[experts,hidden_size,expert_size]
          act_fn !hidden_act
        shared_expert $MLP
          gate_proj Linear weight[shared_size,hidden_size]
          up_proj Linear weight[shared_size,hidden_size]
          down_proj Linear weight[hidden_size,shared_size]
          act_fn !hidden_act
        shared_expert_gate Linear weight[1,hidden_size]
      input_layernorm $RMSNorm weight[hidden_size]
      post_attention_layernorm $RMSNorm weight[hidden_size]
  norm $RMSNorm weight[hidden_size]
)";

constexpr const char *qwen3NextBody = R"(
$Model =layers
  @auto
  @input embed_tokens
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
)";

constexpr const char *qwen35Body = R"(
$ForCausalLM
  @base %
  @output lm_head
  @tie lm_head.weight @input.weight ?tie_word_embeddings
  % $TextModel
  lm_head Linear weight[vocab_size,hidden_size]
$TextModel =layers
  @auto
  @input embed_tokens
  rotary_emb $TextRotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
)";

} // namespace

const std::vector<Family> hybridFamilies = {
    {"nemotron_h", "NemotronH", nemotronH, {nemotronHBody}},
    {"qwen3_5_moe_text",
     "Qwen3_5Moe",
     qwen35Moe,
     {qwen35Body, deltaLayers, layerParts}},
    {"qwen3_5_text", "Qwen3_5", qwen35, {qwen35Body, deltaLayers, layerParts}},
    {"qwen3_next",
     "Qwen3Next",
     qwen3Next,
     {causalHead, qwen3NextBody, sequenceHead, tokenHead, answersTransformer,
      deltaLayers, layerParts}},
};

} // namespace accel::moduletree
