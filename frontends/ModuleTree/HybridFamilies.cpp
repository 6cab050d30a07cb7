//===- HybridFamilies.cpp - Models of state-space layers, as data ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Models whose layers are of several kinds, Mamba-2 among them. From
// transformers 5.23, like LlamaFamilies.cpp.
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

} // namespace

const std::vector<Family> hybridFamilies = {
    {"nemotron_h", "NemotronH", nemotronH, {nemotronHBody}},
};

} // namespace accel::moduletree
