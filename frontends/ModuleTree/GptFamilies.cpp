//===- GptFamilies.cpp - GPT-2 and other early decoders as data -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Decoders whose modules have names of their own: gpt2, gpt_bigcode, gpt_neox,
// opt, falcon, mpt. From transformers 5.23, like LlamaFamilies.cpp.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/SharedParts.h"

namespace accel::moduletree {

namespace {

const std::vector<const char *> gpt2 = {R"(
vocab_size = 50257
hidden_size|n_embd = 768
n_inner = 4*hidden_size
num_hidden_layers|n_layer = 12
num_attention_heads|n_head = 12
max_position_embeddings|n_positions = 1024
add_cross_attention = 0
tie_word_embeddings = 1
text activation_function = gelu_new
nosplit $Block
sliding 0
)"};

constexpr const char *gpt2Body = R"(
$LMHeadModel
  @base %
  @output lm_head
  @tie lm_head.weight @input.weight ?tie_word_embeddings
  % $Model
  lm_head Linear weight[vocab_size,hidden_size]
$Model
  @auto
  @input wte
  wte Embedding weight[vocab_size,hidden_size]
  wpe Embedding weight[max_position_embeddings,hidden_size]
  drop Dropout
  h ModuleList
    [num_hidden_layers] $Block
      ln_1 LayerNorm weight[hidden_size] bias[hidden_size]
      attn $Attention
        c_attn Conv1D weight[hidden_size,3*hidden_size] bias[3*hidden_size]
        c_proj Conv1D weight[hidden_size,hidden_size] bias[hidden_size]
        attn_dropout Dropout
        resid_dropout Dropout
      ln_2 LayerNorm weight[hidden_size] bias[hidden_size]
      crossattention $Attention ?add_cross_attention
        c_attn Conv1D weight[hidden_size,2*hidden_size] bias[2*hidden_size]
        q_attn Conv1D weight[hidden_size,hidden_size] bias[hidden_size]
        c_proj Conv1D weight[hidden_size,hidden_size] bias[hidden_size]
        attn_dropout Dropout
        resid_dropout Dropout
      ln_cross_attn LayerNorm weight[hidden_size] bias[hidden_size] ?add_cross_attention
      mlp $MLP
        c_fc Conv1D weight[hidden_size,n_inner] bias[n_inner]
        c_proj Conv1D weight[n_inner,hidden_size] bias[hidden_size]
        act !activation_function
        dropout Dropout
  ln_f LayerNorm weight[hidden_size] bias[hidden_size]
)";

const std::vector<const char *> gptBigcode = {R"(
vocab_size = 50257
hidden_size|n_embd = 768
n_inner = 4*hidden_size
num_hidden_layers|n_layer = 12
num_attention_heads|n_head = 12
max_position_embeddings|n_positions = 1024
multi_query ?= 1
add_cross_attention = 0
tie_word_embeddings = 1
head_dim := hidden_size/num_attention_heads
qkv_size := hidden_size+2*(multi_query?head_dim:hidden_size)
text activation_function = gelu_pytorch_tanh
nosplit $Block
sliding 0
)"};

constexpr const char *gptBigcodeBody = R"(
$Model
  @auto
  @input wte
  wte Embedding weight[vocab_size,hidden_size]
  wpe Embedding weight[max_position_embeddings,hidden_size]
  drop Dropout
  h ModuleList
    [num_hidden_layers] $Block
      ln_1 LayerNorm weight[hidden_size] bias[hidden_size]
      attn $Attention
        c_attn Linear weight[qkv_size,hidden_size] bias[qkv_size]
        c_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]
        resid_dropout Dropout
      ln_2 LayerNorm weight[hidden_size] bias[hidden_size]
      mlp $MLP
        c_fc Linear weight[n_inner,hidden_size] bias[n_inner]
        c_proj Linear weight[hidden_size,n_inner] bias[hidden_size]
        act !activation_function
        dropout Dropout
  ln_f LayerNorm weight[hidden_size] bias[hidden_size]
)";

const std::vector<const char *> gptNeox = {R"(
vocab_size = 50432
hidden_size = 6144
intermediate_size = 24576
num_hidden_layers = 44
num_attention_heads = 64
max_position_embeddings = 2048
tie_word_embeddings = 0
attention_bias = 1
partial_rotary_factor|rope_parameters.partial_rotary_factor|rotary_pct = 0.25
rotary := (hidden_size/num_attention_heads*partial_rotary_factor+1)/2
text hidden_act = gelu
nosplit $Layer
sliding 0
tp
)"};

constexpr const char *gptNeoxBody = R"(
$Model
  @auto
  @input embed_in
  embed_in Embedding weight[vocab_size,hidden_size]
  emb_dropout Dropout
  layers ModuleList
    [num_hidden_layers] $Layer
      input_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
      post_attention_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
      post_attention_dropout Dropout
      post_mlp_dropout Dropout
      attention $Attention
        query_key_value Linear weight[3*hidden_size,hidden_size] bias[3*hidden_size]?attention_bias
        dense Linear weight[hidden_size,hidden_size] bias[hidden_size]?attention_bias
      mlp $MLP
        dense_h_to_4h Linear weight[intermediate_size,hidden_size] bias[intermediate_size]
        dense_4h_to_h Linear weight[hidden_size,intermediate_size] bias[hidden_size]
        act !hidden_act
  final_layer_norm LayerNorm weight[hidden_size] bias[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
)";

const std::vector<const char *> opt = {R"(
vocab_size = 50272
hidden_size = 768
ffn_dim = 3072
num_hidden_layers = 12
num_attention_heads = 12
max_position_embeddings = 2048
word_embed_proj_dim = hidden_size
do_layer_norm_before = 1
_remove_final_layer_norm = 0
enable_bias = 1
layer_norm_elementwise_affine = 1
tie_word_embeddings = 1
text activation_function = relu
affine := layer_norm_elementwise_affine
nosplit $DecoderLayer
sliding 0
)"};

constexpr const char *optBody = R"(
$ForCausalLM
  @base %
  @output lm_head
  @tie lm_head.weight @input.weight ?tie_word_embeddings
  % $Model
  lm_head Linear weight[vocab_size,word_embed_proj_dim]
$Model
  @auto
  @input decoder.embed_tokens
  decoder $Decoder
    embed_tokens Embedding weight[vocab_size,word_embed_proj_dim]
    embed_positions $LearnedPositionalEmbedding weight[max_position_embeddings+2,hidden_size]
    project_out Linear weight[word_embed_proj_dim,hidden_size] ?word_embed_proj_dim!=hidden_size
    project_in Linear weight[hidden_size,word_embed_proj_dim] ?word_embed_proj_dim!=hidden_size
    final_layer_norm LayerNorm weight[hidden_size]?affine bias[hidden_size]?affine ?do_layer_norm_before&&!_remove_final_layer_norm
    layers ModuleList
      [num_hidden_layers] $DecoderLayer
        self_attn $Attention
          k_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]?enable_bias
          v_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]?enable_bias
          q_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]?enable_bias
          out_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]?enable_bias
        activation_fn !activation_function
        self_attn_layer_norm LayerNorm weight[hidden_size]?affine bias[hidden_size]?affine
        fc1 Linear weight[ffn_dim,hidden_size] bias[ffn_dim]?enable_bias
        fc2 Linear weight[hidden_size,ffn_dim] bias[hidden_size]?enable_bias
        final_layer_norm LayerNorm weight[hidden_size]?affine bias[hidden_size]?affine
$ForSequenceClassification
  @base %
  % $Model
  score Linear weight[num_labels,word_embed_proj_dim]
)";

const std::vector<const char *> falcon = {R"(
vocab_size = 65024
hidden_size|n_embed = 4544
num_hidden_layers = 32
num_attention_heads = 71
max_position_embeddings = 2048
num_kv_heads = num_attention_heads
ffn_hidden_size = 4*hidden_size
new_decoder_architecture = 0
multi_query ?= 1
parallel_attn ?= 1
alibi = 0
bias = 0
tie_word_embeddings = 1
num_ln_in_parallel_attn = new_decoder_architecture?2:1
head_dim := hidden_size/num_attention_heads
qkv_size := new_decoder_architecture?(2*num_kv_heads+num_attention_heads)*head_dim:(multi_query?hidden_size+2*head_dim:3*hidden_size)
two_norms := parallel_attn&&num_ln_in_parallel_attn==2
rotary := (head_dim+1)/2
text activation = gelu
nosplit $DecoderLayer
sliding 0
)"};

constexpr const char *falconBody = R"(
$Model
  @auto
  @input word_embeddings
  word_embeddings Embedding weight[vocab_size,hidden_size]
  h ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attention $Attention
        query_key_value $Linear weight[qkv_size,hidden_size] bias[qkv_size]?bias
        dense $Linear weight[hidden_size,hidden_size] bias[hidden_size]?bias
        attention_dropout Dropout
      mlp $MLP
        dense_h_to_4h $Linear weight[ffn_hidden_size,hidden_size] bias[ffn_hidden_size]?bias
        act !activation
        dense_4h_to_h $Linear weight[hidden_size,ffn_hidden_size] bias[hidden_size]?bias
      post_attention_layernorm LayerNorm weight[hidden_size] bias[hidden_size] ?!parallel_attn
      input_layernorm LayerNorm weight[hidden_size] bias[hidden_size] ?!two_norms
      ln_attn LayerNorm weight[hidden_size] bias[hidden_size] ?two_norms
      ln_mlp LayerNorm weight[hidden_size] bias[hidden_size] ?two_norms
  ln_f LayerNorm weight[hidden_size] bias[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
)";

const std::vector<const char *> mpt = {R"(
vocab_size = 50368
hidden_size|d_model = 2048
num_attention_heads|n_heads = 16
num_hidden_layers|n_layers = 24
max_position_embeddings|max_seq_len = 2048
layer_norm_epsilon = 0.00001
softmax_scale|attn_config.softmax_scale = 0
clip_qkv|attn_config.clip_qkv = 0
alibi_bias_max|attn_config.alibi_bias_max = 8
tie_word_embeddings = 1
nosplit $Block
sliding 0
)"};

constexpr const char *mptBody = R"(
$Model
  @auto
  @input wte
  wte Embedding weight[vocab_size,hidden_size]
  blocks ModuleList
    [num_hidden_layers] $Block
      norm_1 LayerNorm weight[hidden_size]
      attn $Attention
        Wqkv Linear weight[3*hidden_size,hidden_size]
        out_proj Linear weight[hidden_size,hidden_size]
      norm_2 LayerNorm weight[hidden_size]
      ffn $MLP
        up_proj Linear weight[4*hidden_size,hidden_size]
        act GELU
        down_proj Linear weight[hidden_size,4*hidden_size]
      resid_attn_dropout Dropout
  norm_f LayerNorm weight[hidden_size]
)";

} // namespace

const std::vector<Family> gptFamilies = {
    {"gpt2",
     "GPT2",
     gpt2,
     {gpt2Body, sequenceHead, tokenClassifier, answersHead},
     "transformer"},
    {"gpt_bigcode",
     "GPTBigCode",
     gptBigcode,
     {causalHead, gptBigcodeBody, sequenceHead, tokenClassifier},
     "transformer"},
    {"gpt_neox",
     "GPTNeoX",
     gptNeox,
     {causalHead, gptNeoxBody, sequenceHead, tokenClassifier},
     "gpt_neox"},
    {"opt", "OPT", opt, {optBody}},
    {"falcon",
     "Falcon",
     falcon,
     {causalHead, falconBody, sequenceHead},
     "transformer"},
    {"mpt", "Mpt", mpt, {causalHead, mptBody, sequenceHead}, "transformer"},
};

} // namespace accel::moduletree
