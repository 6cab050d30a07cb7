//===- LlamaLikeFamilies.cpp - Decoders laid out as Llama, as data --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Decoders with Llama's layout (model.layers.N.self_attn.q_proj) and modules of
// their own: phi, starcoder2, gpt_oss, cohere, cohere2, stablelm, glm, glm4.
// From transformers 5.23, like LlamaFamilies.cpp.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/SharedParts.h"

namespace accel::moduletree {

namespace {

const std::vector<const char *> phi = {R"(
vocab_size = 51200
hidden_size = 2048
intermediate_size = 8192
num_hidden_layers = 24
num_attention_heads = 32
num_key_value_heads = num_attention_heads
max_position_embeddings = 2048
tie_word_embeddings = 0
qk_layernorm = 0
head_dim = hidden_size/num_attention_heads
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
partial_rotary_factor|rope_parameters.partial_rotary_factor = 0.5
rotary := (head_dim*partial_rotary_factor+1)/2
qkv_bias := 1
text hidden_act = gelu_new
nosplit $DecoderLayer
sliding 0
tp
)"};

constexpr const char *phiBody = R"(
$ForCausalLM
  @base %
  @output lm_head
  @tie lm_head.weight @input.weight ?tie_word_embeddings
  % $Model
  lm_head Linear weight[vocab_size,hidden_size] bias[vocab_size]
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention =qkv
        dense Linear weight[hidden_size,q_size] bias[hidden_size]
        q_layernorm LayerNorm weight[head_dim] bias[head_dim] ?qk_layernorm
        k_layernorm LayerNorm weight[head_dim] bias[head_dim] ?qk_layernorm
      mlp $MLP =twolayers
      input_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
      resid_dropout Dropout
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
  embed_dropout Dropout
  final_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
)";

const std::vector<const char *> starcoder2 = {R"(
vocab_size = 49152
hidden_size = 3072
intermediate_size = 12288
num_hidden_layers = 30
num_attention_heads = 24
num_key_value_heads = 2
max_position_embeddings = 4096
tie_word_embeddings = 1
use_bias = 1
head_dim = hidden_size/num_attention_heads
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
rotary := (head_dim+1)/2
sliding_window ?= 0
qkv_bias := use_bias
text hidden_act = gelu_pytorch_tanh
nosplit $DecoderLayer
sliding sliding_window
tp
)"};

constexpr const char *starcoder2Body = R"(
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention =qkv
        o_proj Linear weight[hidden_size,q_size] bias[hidden_size]?use_bias
      mlp $MLP
        c_fc Linear weight[intermediate_size,hidden_size] bias[intermediate_size]?use_bias
        c_proj Linear weight[hidden_size,intermediate_size] bias[hidden_size]?use_bias
        act !hidden_act
      input_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
      post_attention_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
  norm LayerNorm weight[hidden_size] bias[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
)";

const std::vector<const char *> gptOss = {R"(
vocab_size = 201088
hidden_size = 2880
intermediate_size = 2880
num_hidden_layers = 36
num_attention_heads = 64
num_key_value_heads ?= 8 num_attention_heads
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
qkv_bias := attention_bias
fp32 post_attention_layernorm input_layernorm norm
nosplit $DecoderLayer
sliding (layer+1)%2
)"};

constexpr const char *gptOssBody = R"(
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention sinks[num_attention_heads] =qkv
        o_proj Linear weight[hidden_size,q_size] bias[hidden_size]?attention_bias
      mlp $MLP
        router $TopKRouter weight[experts,hidden_size] bias[experts]
        experts $Experts gate_up_proj[experts,hidden_size,2*intermediate_size] gate_up_proj_bias[experts,2*intermediate_size] down_proj[experts,intermediate_size,hidden_size] down_proj_bias[experts,hidden_size]
      input_layernorm $RMSNorm weight[hidden_size]
      post_attention_layernorm $RMSNorm weight[hidden_size]
  norm $RMSNorm weight[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
)";

constexpr const char *cohereSettings = R"(
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
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
rotary := (head_dim+1)/2
qkv_bias := attention_bias
mlp_bias := 0
text hidden_act = silu
nosplit $DecoderLayer
tp
)";

const std::vector<const char *> cohere = {cohereSettings, R"(
use_qk_norm = 0
sliding 0
)"};

const std::vector<const char *> cohere2 = {cohereSettings, R"(
use_qk_norm := 0
sliding_window ?= 4096
sliding_window_pattern = 4
sliding (layer+1)%sliding_window_pattern
)"};

constexpr const char *cohereBody = R"(
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention =qkv
        o_proj Linear weight[hidden_size,q_size] bias[hidden_size]?attention_bias
        q_norm $LayerNorm weight[num_attention_heads,head_dim] ?use_qk_norm
        k_norm $LayerNorm weight[num_key_value_heads,head_dim] ?use_qk_norm
      mlp $MLP =gated
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
q_size := hidden_size
kv_size := num_key_value_heads*head_dim
partial_rotary_factor|rope_parameters.partial_rotary_factor = 0.25
rotary := (head_dim*partial_rotary_factor+1)/2
qkv_bias := use_qkv_bias
mlp_bias := 0
text hidden_act = silu
nosplit $DecoderLayer
sliding 0
)"};

constexpr const char *stableLmBody = R"(
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention =qkv
        o_proj Linear weight[hidden_size,hidden_size]
        q_layernorm $LayerNormPerHead ?qk_layernorm
          norms ModuleList
            [num_attention_heads] LayerNorm weight[head_dim]
        k_layernorm $LayerNormPerHead ?qk_layernorm
          norms ModuleList
            [num_key_value_heads] LayerNorm weight[head_dim]
      mlp $MLP =gated
      input_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
      post_attention_layernorm LayerNorm weight[hidden_size] bias[hidden_size] ?!use_parallel_residual
      dropout Dropout
  norm LayerNorm weight[hidden_size] bias[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
)";

constexpr const char *glmSettings = R"(
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
qkv_bias := attention_bias
text hidden_act = silu
nosplit $DecoderLayer
sliding 0
tp
)";

const std::vector<const char *> glm = {glmSettings, "norms_behind := 0"};
const std::vector<const char *> glm4 = {glmSettings, "norms_behind := 1"};

constexpr const char *glmBody = R"(
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention =qkv
        o_proj Linear weight[hidden_size,q_size]
      mlp $MLP =gatedfused
      input_layernorm $RMSNorm weight[hidden_size]
      post_attention_layernorm $RMSNorm weight[hidden_size]
      post_self_attn_layernorm $RMSNorm weight[hidden_size] ?norms_behind
      post_mlp_layernorm $RMSNorm weight[hidden_size] ?norms_behind
  norm $RMSNorm weight[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
)";

} // namespace

const std::vector<Family> llamaLikeFamilies = {
    {"phi", "Phi", phi, {phiBody, layerParts, sequenceHead}},
    {"starcoder2",
     "Starcoder2",
     starcoder2,
     {causalHead, starcoder2Body, layerParts}},
    {"gpt_oss",
     "GptOss",
     gptOss,
     {causalHead, gptOssBody, layerParts, sequenceHead, tokenHead}},
    {"cohere", "Cohere", cohere, {causalHead, cohereBody, layerParts}},
    {"cohere2", "Cohere2", cohere2, {causalHead, cohereBody, layerParts}},
    {"glm",
     "Glm",
     glm,
     {causalHead, glmBody, layerParts, sequenceHead, tokenHead}},
    {"glm4",
     "Glm4",
     glm4,
     {causalHead, glmBody, layerParts, sequenceHead, tokenHead}},
    {"stablelm",
     "StableLm",
     stableLm,
     {causalHead, stableLmBody, layerParts, sequenceHead, tokenHead}},
};

} // namespace accel::moduletree
