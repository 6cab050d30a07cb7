//===- MixtureFamilies.cpp - Decoders with experts as data ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Llama's descendants whose layers have experts. From transformers 5.23, like
// LlamaFamilies.cpp.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/LlamaBody.h"

#include <algorithm>

namespace accel::moduletree {

namespace {

const std::vector<const char *> qwen3Moe = {R"(
vocab_size = 151936
hidden_size = 2048
intermediate_size = 6144
num_hidden_layers = 24
num_attention_heads = 32
num_key_value_heads ?= 4 num_attention_heads
max_position_embeddings = 32768
tie_word_embeddings = 0
text hidden_act = silu
head_dim = hidden_size/num_attention_heads
use_sliding_window = 0
sliding_window ?= 4096
)",
                                            llamaDerived, llamaSwitches, R"(
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
q_norm_size := head_dim
k_norm_size := head_dim
num_experts|num_local_experts = 128
experts := num_experts
expert_size|moe_intermediate_size = 768
decoder_sparse_step = 1
gate_last := 1
sliding use_sliding_window&&sliding_window
)"};

const std::vector<const char *> qwen2Moe = {R"(
vocab_size = 151936
hidden_size = 2048
intermediate_size = 5632
num_hidden_layers = 24
num_attention_heads = 16
num_key_value_heads ?= 16 num_attention_heads
max_position_embeddings = 32768
tie_word_embeddings = 0
text hidden_act = silu
head_dim = hidden_size/num_attention_heads
use_sliding_window = 0
sliding_window ?= 4096
sliding_window := use_sliding_window?sliding_window:0
max_window_layers = 28
num_experts_per_tok = 4
)",
                                            llamaDerived, llamaSwitches, R"(
qkv_bias = 1
experts|num_experts|num_local_experts = 60
expert_size|moe_intermediate_size = 1408
shared_size|shared_expert_intermediate_size = 5632
decoder_sparse_step = 1
sliding use_sliding_window&&(layer+1)%2&&layer<max_window_layers
)"};

const std::vector<const char *> mixtral = {R"(
vocab_size = 32000
hidden_size = 4096
intermediate_size = 14336
num_hidden_layers = 32
num_attention_heads = 32
num_key_value_heads ?= 8 num_attention_heads
max_position_embeddings = 131072
tie_word_embeddings = 0
text hidden_act = silu
head_dim = hidden_size/num_attention_heads
)",
                                           llamaDerived, llamaSwitches, R"(
experts|num_local_experts|num_experts = 8
expert_size := intermediate_size
sliding_window ?= 0
sliding sliding_window
)"};

const std::vector<const char *> deepseekV3 = {R"(
vocab_size = 129280
hidden_size = 7168
intermediate_size = 18432
num_hidden_layers = 61
num_attention_heads = 128
num_key_value_heads ?= 128 num_attention_heads
max_position_embeddings = 4096
tie_word_embeddings = 0
text hidden_act = silu
q_lora_rank ?= 1536
kv_lora_rank = 512
qk_rope_head_dim = 64
qk_nope_head_dim = 128
v_head_dim = 128
head_dim := qk_rope_head_dim
)",
                                              llamaDerived, llamaSwitches, R"(
latent := 1
grouped := 1
attention_bias = 0
q_size := num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim)
first_k_dense_replace = 3
experts|n_routed_experts|num_local_experts = 256
num_experts_per_tok = 8
expert_size|moe_intermediate_size = 2048
n_shared_experts = 1
shared_size := n_shared_experts*expert_size
n_group = 8
topk_group = 4
norm_topk_prob = 1
routed_scaling_factor = 2.5
dense layer<first_k_dense_replace
sliding 0
)"};

const std::vector<const char *> glm4Moe = {R"(
vocab_size = 151552
hidden_size = 4096
intermediate_size = 10944
num_hidden_layers = 46
num_attention_heads = 96
num_key_value_heads = 8
head_dim = (hidden_size-hidden_size%num_attention_heads)/num_attention_heads
max_position_embeddings = 131072
tie_word_embeddings = 0
text hidden_act = silu
partial_rotary_factor|rope_parameters.partial_rotary_factor = 0.5
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
rotary := (head_dim*partial_rotary_factor+1)/2
)",
                                           llamaSwitches, R"(
grouped := 1
wide_choice := 1
attention_bias = 0
qkv_bias := attention_bias
use_qk_norm = 0
q_norm_size := use_qk_norm*head_dim
k_norm_size := use_qk_norm*head_dim
first_k_dense_replace = 1
experts|n_routed_experts|num_local_experts = 128
num_experts_per_tok = 8
expert_size|moe_intermediate_size = 1408
n_shared_experts = 1
shared_size := n_shared_experts*expert_size
n_group = 1
topk_group = 1
norm_topk_prob = 1
routed_scaling_factor = 1
dense layer<first_k_dense_replace
sliding 0
)"};

const std::vector<const char *> glm4MoeLite = {R"(
vocab_size = 154880
hidden_size = 2048
intermediate_size = 10240
num_hidden_layers = 47
num_attention_heads = 20
num_key_value_heads = 20
max_position_embeddings = 202752
tie_word_embeddings = 0
text hidden_act = silu
q_lora_rank ?= 768
kv_lora_rank = 512
qk_rope_head_dim|head_dim = 64
qk_nope_head_dim = 192
v_head_dim = 256
head_dim := qk_rope_head_dim
)",
                                               llamaDerived, llamaSwitches, R"(
latent := 1
grouped := 1
wide_choice := 1
attention_bias = 0
q_size := num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim)
experts|n_routed_experts|num_local_experts = 64
num_experts_per_tok = 4
expert_size|moe_intermediate_size = 1536
n_shared_experts = 1
shared_size := n_shared_experts*expert_size
n_group = 1
topk_group = 1
norm_topk_prob = 1
routed_scaling_factor = 1.8
dense layer<1 mlp_layer_types
sliding 0
)"};

// Its norms of queries and keys are sized by hidden_size.
const std::vector<const char *> olmoe = {R"(
vocab_size = 50304
hidden_size = 2048
intermediate_size = 2048
num_hidden_layers = 16
num_attention_heads = 16
max_position_embeddings = 4096
tie_word_embeddings = 0
text hidden_act = silu
num_experts_per_tok = 8
)",
                                         llamaSizes, llamaDerived,
                                         llamaSwitches, R"(
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
q_norm_size := hidden_size
k_norm_size := hidden_size/num_attention_heads*num_key_value_heads
experts|num_experts|num_local_experts = 64
expert_size := intermediate_size
sliding 0
)"};

constexpr const char *graniteMoeSettings = R"(
vocab_size = 32000
hidden_size = 4096
intermediate_size = 11008
num_hidden_layers = 32
num_attention_heads = 32
num_key_value_heads = num_attention_heads
head_dim = hidden_size/num_attention_heads
max_position_embeddings = 2048
tie_word_embeddings = 0
text hidden_act = silu
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
rotary := (head_dim+1)/2
attention_bias = 0
qkv_bias := attention_bias
mlp_bias := 0
experts|num_local_experts = 8
num_experts_per_tok = 2
nosplit $DecoderLayer
tp
sliding 0
)";

const std::vector<const char *> graniteMoe = {graniteMoeSettings};

/// Every layer has attention. Without a list all have Mamba-2.
bool attendsEverywhere(huggingface::ConfigReader &config) {
  const char *key = "layer_types";
  const nlohmann::json *types =
      config.find(config.find(key) ? key : "layers_block_type");
  if (!types || !types->is_array())
    return false;
  return std::all_of(types->begin(), types->end(),
                     [](const nlohmann::json &type) {
                       return type == "full_attention" || type == "attention";
                     });
}

const std::vector<const char *> graniteMoeHybrid = {graniteMoeSettings, R"(
shared_intermediate_size = 1024
text position_embedding_type = none
starts rotates position_embedding_type rope
)"};

constexpr const char *graniteMoeBody = R"(
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention =qkv
        o_proj Linear weight[hidden_size,q_size] bias[hidden_size]?attention_bias
      input_layernorm $RMSNorm weight[hidden_size]
      post_attention_layernorm $RMSNorm weight[hidden_size]
      block_sparse_moe $MoE =experts
  norm $RMSNorm weight[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
)";

constexpr const char *graniteMoeHybridBody = R"(
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      input_layernorm $RMSNorm weight[hidden_size]
      post_attention_layernorm $RMSNorm weight[hidden_size]
      block_sparse_moe $MoE =experts ?experts
      shared_mlp $MLP
        activation !hidden_act
        input_linear Linear weight[2*shared_intermediate_size,hidden_size]
        output_linear Linear weight[hidden_size,shared_intermediate_size]
      self_attn $Attention =qkv
        o_proj Linear weight[hidden_size,q_size] bias[hidden_size]?attention_bias
  norm $RMSNorm weight[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary] ?rotates
)";

constexpr const char *graniteExperts = R"(
experts
  router $TopKRouter weight[experts,hidden_size]
  experts $Experts gate_up_proj[experts,2*intermediate_size,hidden_size] down_proj[experts,hidden_size,intermediate_size]
    act_fn !hidden_act
)";

} // namespace

const std::vector<Family> mixtureFamilies = {
    {"qwen2_moe", "Qwen2Moe", qwen2Moe, llamaClasses({answersHead})},
    {"qwen3_moe", "Qwen3Moe", qwen3Moe, llamaClasses({answersTransformer})},
    {"mixtral", "Mixtral", mixtral, llamaClasses({answersHead})},
    {"deepseek_v3", "DeepseekV3", deepseekV3, llamaClasses()},
    {"glm4_moe", "Glm4Moe", glm4Moe, {causalHead, llamaBody, layerParts}},
    {"glm4_moe_lite",
     "Glm4MoeLite",
     glm4MoeLite,
     {causalHead, llamaBody, layerParts}},
    {"granitemoe",
     "GraniteMoe",
     graniteMoe,
     {causalHead, graniteMoeBody, graniteExperts, layerParts}},
    {"granitemoehybrid",
     "GraniteMoeHybrid",
     graniteMoeHybrid,
     {causalHead, graniteMoeHybridBody, graniteExperts, layerParts},
     "model",
     attendsEverywhere},
    {"olmoe", "Olmoe", olmoe, llamaClasses()},
};

} // namespace accel::moduletree
