//===- Decoders.cpp - Decoder-only models as data -------------------------===//
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
  @base transformer
  @input transformer.wte
  @output lm_head
  @tie lm_head.weight transformer.wte.weight ?tie_word_embeddings
  transformer $Model
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
$ForSequenceClassification
  @base transformer
  @input transformer.wte
  transformer $Model
  score Linear weight[num_labels,hidden_size]
$ForTokenClassification
  @base transformer
  @input transformer.wte
  transformer $Model
  dropout Dropout
  classifier Linear weight[num_labels,hidden_size] bias[num_labels]
$ForQuestionAnswering
  @base transformer
  @input transformer.wte
  transformer $Model
  qa_outputs Linear weight[2,hidden_size] bias[2]
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
$ForCausalLM
  @base gpt_neox
  @input gpt_neox.embed_in
  @output lm_head
  @tie lm_head.weight gpt_neox.embed_in.weight ?tie_word_embeddings
  gpt_neox $Model
  lm_head Linear weight[vocab_size,hidden_size]
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
$ForSequenceClassification
  @base gpt_neox
  @input gpt_neox.embed_in
  gpt_neox $Model
  score Linear weight[num_labels,hidden_size]
$ForTokenClassification
  @base gpt_neox
  @input gpt_neox.embed_in
  gpt_neox $Model
  dropout Dropout
  classifier Linear weight[num_labels,hidden_size] bias[num_labels]
)";

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
text hidden_act = gelu_new
nosplit $DecoderLayer
sliding 0
tp
)"};

constexpr const char *phiBody = R"(
$ForCausalLM
  @base model
  @input model.embed_tokens
  @output lm_head
  @tie lm_head.weight model.embed_tokens.weight ?tie_word_embeddings
  model $Model
  lm_head Linear weight[vocab_size,hidden_size] bias[vocab_size]
$Model
  @auto
  @input embed_tokens
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention
        q_proj Linear weight[q_size,hidden_size] bias[q_size]
        k_proj Linear weight[kv_size,hidden_size] bias[kv_size]
        v_proj Linear weight[kv_size,hidden_size] bias[kv_size]
        dense Linear weight[hidden_size,q_size] bias[hidden_size]
        q_layernorm LayerNorm weight[head_dim] bias[head_dim] ?qk_layernorm
        k_layernorm LayerNorm weight[head_dim] bias[head_dim] ?qk_layernorm
      mlp $MLP
        activation_fn !hidden_act
        fc1 Linear weight[intermediate_size,hidden_size] bias[intermediate_size]
        fc2 Linear weight[hidden_size,intermediate_size] bias[hidden_size]
      input_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
      resid_dropout Dropout
  rotary_emb $RotaryEmbedding ~inv_freq[rotary] ~original_inv_freq[rotary]
  embed_dropout Dropout
  final_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
$ForSequenceClassification
  @base model
  @input model.embed_tokens
  model $Model
  score Linear weight[num_labels,hidden_size]
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
text hidden_act = gelu_pytorch_tanh
nosplit $DecoderLayer
sliding sliding_window
tp
)"};

constexpr const char *starcoder2Body = R"(
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
        q_proj Linear weight[q_size,hidden_size] bias[q_size]?use_bias
        k_proj Linear weight[kv_size,hidden_size] bias[kv_size]?use_bias
        v_proj Linear weight[kv_size,hidden_size] bias[kv_size]?use_bias
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
  @base model
  @input model.decoder.embed_tokens
  @output lm_head
  @tie lm_head.weight model.decoder.embed_tokens.weight ?tie_word_embeddings
  model $Model
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
  @base model
  @input model.decoder.embed_tokens
  model $Model
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
$ForCausalLM
  @base transformer
  @input transformer.word_embeddings
  @output lm_head
  @tie lm_head.weight transformer.word_embeddings.weight ?tie_word_embeddings
  transformer $Model
  lm_head Linear weight[vocab_size,hidden_size]
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
$ForSequenceClassification
  @base transformer
  @input transformer.word_embeddings
  transformer $Model
  score Linear weight[num_labels,hidden_size]
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
$ForCausalLM
  @base transformer
  @input transformer.wte
  @output lm_head
  @tie lm_head.weight transformer.wte.weight ?tie_word_embeddings
  transformer $Model
  lm_head Linear weight[vocab_size,hidden_size]
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
$ForSequenceClassification
  @base transformer
  @input transformer.wte
  transformer $Model
  score Linear weight[num_labels,hidden_size]
)";

const std::vector<const char *> nemotronH = {R"(
vocab_size = 131072
hidden_size = 4096
num_attention_heads = 32
num_key_value_heads ?= 8
num_key_value_heads := num_key_value_heads?num_key_value_heads:num_attention_heads
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
  @base model
  @input model.embeddings
  @output lm_head
  model $Model
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
$ForCausalLM
  @base transformer
  @input transformer.wte
  @output lm_head
  @tie lm_head.weight transformer.wte.weight ?tie_word_embeddings
  transformer $Model
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
$ForSequenceClassification
  @base transformer
  @input transformer.wte
  transformer $Model
  score Linear weight[num_labels,hidden_size]
$ForTokenClassification
  @base transformer
  @input transformer.wte
  transformer $Model
  dropout Dropout
  classifier Linear weight[num_labels,hidden_size] bias[num_labels]
)";

const std::vector<Family> decoderFamilies = {
    {"nemotron_h", "NemotronH", nemotronH, nemotronHBody},
    {"gpt2", "GPT2", gpt2, gpt2Body},
    {"gpt_bigcode", "GPTBigCode", gptBigcode, gptBigcodeBody},
    {"gpt_neox", "GPTNeoX", gptNeox, gptNeoxBody},
    {"phi", "Phi", phi, phiBody},
    {"starcoder2", "Starcoder2", starcoder2, starcoder2Body},
    {"opt", "OPT", opt, optBody},
    {"falcon", "Falcon", falcon, falconBody},
    {"mpt", "Mpt", mpt, mptBody},
};

} // namespace accel::moduletree
