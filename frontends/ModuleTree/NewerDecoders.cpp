//===- NewerDecoders.cpp - Decoder-only models of 2024 on, as data --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// From transformers 5.23, like Families.cpp.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/Description.h"

namespace accel::moduletree {

namespace {

const std::vector<const char *> gptOss = {R"(
vocab_size = 201088
hidden_size = 2880
intermediate_size = 2880
num_hidden_layers = 36
num_attention_heads = 64
num_key_value_heads ?= 8
num_key_value_heads := num_key_value_heads?num_key_value_heads:num_attention_heads
head_dim ?= 64
head_dim := head_dim?head_dim:hidden_size/num_attention_heads
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
rotary := (head_dim+1)/2
experts|num_local_experts|num_experts = 128
num_experts_per_tok = 4
max_position_embeddings = 131072
sliding_window ?= 128
tie_word_embeddings = 0
attention_bias = 1
fp32 post_attention_layernorm input_layernorm norm
nosplit $DecoderLayer
sliding (layer+1)%2
)"};

constexpr const char *gptOssBody = R"(
$ForCausalLM
  @base model
  @input model.embed_tokens
  @output lm_head
  @tie lm_head.weight model.embed_tokens.weight ?tie_word_embeddings
  model $Model
  lm_head Linear weight[vocab_size,hidden_size]
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention sinks[num_attention_heads]
        q_proj Linear weight[q_size,hidden_size] bias[q_size]?attention_bias
        k_proj Linear weight[kv_size,hidden_size] bias[kv_size]?attention_bias
        v_proj Linear weight[kv_size,hidden_size] bias[kv_size]?attention_bias
        o_proj Linear weight[hidden_size,q_size] bias[hidden_size]?attention_bias
      mlp $MLP
        router $TopKRouter weight[experts,hidden_size] bias[experts]
        experts $Experts gate_up_proj[experts,hidden_size,2*intermediate_size] gate_up_proj_bias[experts,2*intermediate_size] down_proj[experts,intermediate_size,hidden_size] down_proj_bias[experts,hidden_size]
      input_layernorm $RMSNorm weight[hidden_size]
      post_attention_layernorm $RMSNorm weight[hidden_size]
  norm $RMSNorm weight[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
$ForSequenceClassification
  @base model
  @input model.embed_tokens
  model $Model
  score Linear weight[num_labels,hidden_size]
$ForTokenClassification
  @base model
  @input model.embed_tokens
  model $Model
  dropout Dropout
  score Linear weight[num_labels,hidden_size] bias[num_labels]
)";

const std::vector<const char *> cohere = {R"(
vocab_size = 256000
hidden_size = 8192
intermediate_size = 22528
num_hidden_layers = 40
num_attention_heads = 64
num_key_value_heads = num_attention_heads
head_dim = hidden_size/num_attention_heads
max_position_embeddings = 8192
tie_word_embeddings = 1
attention_bias = 0
use_qk_norm = 0
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
rotary := (head_dim+1)/2
text hidden_act = silu
nosplit $DecoderLayer
sliding 0
tp
)"};

constexpr const char *cohereBody = R"(
$ForCausalLM
  @base model
  @input model.embed_tokens
  @output lm_head
  @tie lm_head.weight model.embed_tokens.weight ?tie_word_embeddings
  model $Model
  lm_head Linear weight[vocab_size,hidden_size]
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention
        q_proj Linear weight[q_size,hidden_size] bias[q_size]?attention_bias
        k_proj Linear weight[kv_size,hidden_size] bias[kv_size]?attention_bias
        v_proj Linear weight[kv_size,hidden_size] bias[kv_size]?attention_bias
        o_proj Linear weight[hidden_size,q_size] bias[hidden_size]?attention_bias
        q_norm $LayerNorm weight[num_attention_heads,head_dim] ?use_qk_norm
        k_norm $LayerNorm weight[num_key_value_heads,head_dim] ?use_qk_norm
      mlp $MLP
        gate_proj Linear weight[intermediate_size,hidden_size]
        up_proj Linear weight[intermediate_size,hidden_size]
        down_proj Linear weight[hidden_size,intermediate_size]
        act_fn !hidden_act
      input_layernorm $LayerNorm weight[hidden_size]
  norm $LayerNorm weight[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
)";

const std::vector<const char *> stableLm = {R"(
vocab_size = 50304
hidden_size = 2560
intermediate_size = 6912
num_hidden_layers = 32
num_attention_heads = 32
num_key_value_heads = 32
max_position_embeddings = 4096
tie_word_embeddings = 0
use_qkv_bias = 0
qk_layernorm = 0
use_parallel_residual = 0
head_dim := hidden_size/num_attention_heads
kv_size := num_key_value_heads*head_dim
partial_rotary_factor|rope_parameters.partial_rotary_factor = 0.25
rotary := (head_dim*partial_rotary_factor+1)/2
text hidden_act = silu
nosplit $DecoderLayer
sliding 0
)"};

constexpr const char *stableLmBody = R"(
$ForCausalLM
  @base model
  @input model.embed_tokens
  @output lm_head
  @tie lm_head.weight model.embed_tokens.weight ?tie_word_embeddings
  model $Model
  lm_head Linear weight[vocab_size,hidden_size]
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention
        q_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]?use_qkv_bias
        k_proj Linear weight[kv_size,hidden_size] bias[kv_size]?use_qkv_bias
        v_proj Linear weight[kv_size,hidden_size] bias[kv_size]?use_qkv_bias
        o_proj Linear weight[hidden_size,hidden_size]
        q_layernorm $LayerNormPerHead ?qk_layernorm
          norms ModuleList
            [num_attention_heads] LayerNorm weight[head_dim]
        k_layernorm $LayerNormPerHead ?qk_layernorm
          norms ModuleList
            [num_key_value_heads] LayerNorm weight[head_dim]
      mlp $MLP
        gate_proj Linear weight[intermediate_size,hidden_size]
        up_proj Linear weight[intermediate_size,hidden_size]
        down_proj Linear weight[hidden_size,intermediate_size]
        act_fn !hidden_act
      input_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
      post_attention_layernorm LayerNorm weight[hidden_size] bias[hidden_size] ?!use_parallel_residual
      dropout Dropout
  norm LayerNorm weight[hidden_size] bias[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
$ForSequenceClassification
  @base model
  @input model.embed_tokens
  model $Model
  score Linear weight[num_labels,hidden_size]
$ForTokenClassification
  @base model
  @input model.embed_tokens
  model $Model
  dropout Dropout
  score Linear weight[num_labels,hidden_size] bias[num_labels]
)";

const std::vector<const char *> glm4 = {R"(
vocab_size = 151552
hidden_size = 4096
intermediate_size = 13696
num_hidden_layers = 40
num_attention_heads = 32
num_key_value_heads = 2
head_dim = 128
max_position_embeddings = 131072
tie_word_embeddings = 0
attention_bias = 1
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
partial_rotary_factor|rope_parameters.partial_rotary_factor = 0.5
rotary := (head_dim*partial_rotary_factor+1)/2
text hidden_act = silu
nosplit $DecoderLayer
sliding 0
tp
)"};

constexpr const char *glm4Body = R"(
$ForCausalLM
  @base model
  @input model.embed_tokens
  @output lm_head
  @tie lm_head.weight model.embed_tokens.weight ?tie_word_embeddings
  model $Model
  lm_head Linear weight[vocab_size,hidden_size]
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention
        q_proj Linear weight[q_size,hidden_size] bias[q_size]?attention_bias
        k_proj Linear weight[kv_size,hidden_size] bias[kv_size]?attention_bias
        v_proj Linear weight[kv_size,hidden_size] bias[kv_size]?attention_bias
        o_proj Linear weight[hidden_size,q_size]
      mlp $MLP
        gate_up_proj Linear weight[2*intermediate_size,hidden_size]
        down_proj Linear weight[hidden_size,intermediate_size]
        activation_fn !hidden_act
      input_layernorm $RMSNorm weight[hidden_size]
      post_attention_layernorm $RMSNorm weight[hidden_size]
      post_self_attn_layernorm $RMSNorm weight[hidden_size]
      post_mlp_layernorm $RMSNorm weight[hidden_size]
  norm $RMSNorm weight[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
$ForSequenceClassification
  @base model
  @input model.embed_tokens
  model $Model
  score Linear weight[num_labels,hidden_size]
$ForTokenClassification
  @base model
  @input model.embed_tokens
  model $Model
  dropout Dropout
  score Linear weight[num_labels,hidden_size] bias[num_labels]
)";

} // namespace

const std::vector<Family> newerDecoderFamilies = {
    {"gpt_oss", "GptOss", gptOss, gptOssBody},
    {"cohere", "Cohere", cohere, cohereBody},
    {"glm4", "Glm4", glm4, glm4Body},
    {"stablelm", "StableLm", stableLm, stableLmBody},
};

} // namespace accel::moduletree
