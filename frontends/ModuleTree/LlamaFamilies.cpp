//===- LlamaFamilies.cpp - Llama and its descendants as data --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// From transformers 5.23: modeling_*.py and configuration_*.py of each family.
// test/parity/module_tree_cases.py compares every entry with the real classes.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/SharedParts.h"

namespace accel::moduletree {

namespace {

// One body, switched by settings.
constexpr const char *llamaBody = R"(
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
      mlp $MLP =gated ?!fused&&!ungated&&(!experts||only_mlp||layer<first_k_dense_replace||(layer+1)%decoder_sparse_step!=0)
      mlp $MLP =gatedfused ?fused
      mlp $MLP ?ungated
        up_proj Linear weight[intermediate_size,hidden_size] bias[intermediate_size]?mlp_bias
        down_proj Linear weight[hidden_size,intermediate_size] bias[hidden_size]?mlp_bias
        act_fn !hidden_act
      mlp $MoE ?latent&&layer>=first_k_dense_replace
        experts $Experts gate_up_proj[experts,2*expert_size,hidden_size] down_proj[experts,hidden_size,expert_size]
          act_fn !hidden_act
        gate $TopkRouter weight[experts,hidden_size] ~e_score_correction_bias[experts]:model
        shared_experts $MLP =shared
      mlp $SparseMoeBlock ?experts&&!latent&&!only_mlp&&(layer+1)%decoder_sparse_step==0
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

// Some classes name their base model otherwise for question answering.
constexpr const char *answersTransformer = R"(
$ForQuestionAnswering
  @base transformer
  transformer $Model
  qa_outputs Linear weight[2,hidden_size] bias[2]
)";

constexpr const char *llamaSwitches = R"(
scaled := 0
fused := 0
ungated := 0
latent := 0
first_k_dense_replace := 0
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
qkv_bias := 0
o_bias := 0
mlp_bias := 0
nosplit $DecoderLayer
tp
)";

constexpr const char *llamaSizes = R"(
num_key_value_heads = num_attention_heads
head_dim = hidden_size/num_attention_heads
)";

constexpr const char *llamaDerived = R"(
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
partial_rotary_factor|rope_parameters.partial_rotary_factor = 1
rotary := (head_dim*partial_rotary_factor+1)/2
)";

const std::vector<const char *> llama = {R"(
vocab_size = 32000
hidden_size = 4096
intermediate_size = 11008
num_hidden_layers = 32
num_attention_heads = 32
max_position_embeddings = 2048
tie_word_embeddings = 0
text hidden_act = silu
)",
                                         llamaSizes, llamaDerived,
                                         llamaSwitches, R"(
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
mlp_bias = 0
sliding 0
)"};

const std::vector<const char *> mistral = {R"(
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
sliding_window ?= 4096
sliding sliding_window
)"};

const std::vector<const char *> qwen2 = {R"(
vocab_size = 151936
hidden_size = 4096
intermediate_size = 22016
num_hidden_layers = 32
num_attention_heads = 32
num_key_value_heads ?= 32 num_attention_heads
max_position_embeddings = 32768
tie_word_embeddings = 0
text hidden_act = silu
head_dim = hidden_size/num_attention_heads
use_sliding_window = 0
sliding_window ?= 4096
max_window_layers = 28
)",
                                         llamaDerived, llamaSwitches, R"(
qkv_bias := 1
sliding use_sliding_window&&sliding_window&&layer>=max_window_layers
)"};

const std::vector<const char *> qwen3 = {R"(
vocab_size = 151936
hidden_size = 4096
intermediate_size = 22016
num_hidden_layers = 32
num_attention_heads = 32
num_key_value_heads ?= 32 num_attention_heads
max_position_embeddings = 32768
tie_word_embeddings = 0
text hidden_act = silu
head_dim = 128
use_sliding_window = 0
sliding_window ?= 4096
max_window_layers = 28
)",
                                         llamaDerived, llamaSwitches, R"(
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
q_norm_size := head_dim
k_norm_size := head_dim
sliding use_sliding_window&&sliding_window&&layer>=max_window_layers
)"};

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
sliding 0
)"};

const std::vector<const char *> gemma = {R"(
vocab_size = 256000
hidden_size = 3072
intermediate_size = 24576
num_hidden_layers = 28
num_attention_heads = 16
num_key_value_heads = 16
head_dim = 256
max_position_embeddings = 8192
tie_word_embeddings = 1
text hidden_act|hidden_activation = gelu_pytorch_tanh
)",
                                         llamaDerived, llamaSwitches, R"(
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
scaled := 1
sliding 0
)"};

const std::vector<const char *> gemma2 = {R"(
vocab_size = 256000
hidden_size = 2304
intermediate_size = 9216
num_hidden_layers = 26
num_attention_heads = 8
num_key_value_heads = 4
head_dim = 256
max_position_embeddings = 8192
tie_word_embeddings = 1
text hidden_act|hidden_activation = gelu_pytorch_tanh
)",
                                          llamaDerived, llamaSwitches, R"(
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
scaled := 1
sandwich := 1
sliding (layer+1)%2
)"};

const std::vector<const char *> gemma3 = {R"(
vocab_size = 262208
hidden_size = 2304
intermediate_size = 9216
num_hidden_layers = 26
num_attention_heads = 8
num_key_value_heads = 4
head_dim = 256
max_position_embeddings = 131072
tie_word_embeddings = 1
text hidden_act|hidden_activation = gelu_pytorch_tanh
)",
                                          llamaDerived, llamaSwitches, R"(
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
q_norm_size := head_dim
k_norm_size := head_dim
scaled := 1
sandwich := 1
two_ropes := 1
sliding_window_pattern|_sliding_window_pattern = 6
sliding (layer+1)%sliding_window_pattern
)"};

constexpr const char *gemma3Body = R"(
$ForCausalLM
  @base %
  @output lm_head
  @tie lm_head.weight @input.weight ?tie_word_embeddings
  % $TextModel =$Model
  lm_head Linear weight[vocab_size,hidden_size]
$TextModel =$Model
  @auto
  @input embed_tokens
)";

const std::vector<const char *> phi3 = {R"(
vocab_size = 32064
hidden_size = 3072
intermediate_size = 8192
num_hidden_layers = 32
num_attention_heads = 32
max_position_embeddings = 4096
tie_word_embeddings = 0
text hidden_act = silu
)",
                                        llamaSizes, llamaDerived, llamaSwitches,
                                        R"(
fused := 1
sliding_window ?= 0
sliding sliding_window
)"};

constexpr const char *olmo2Defaults = R"(
vocab_size = 50304
hidden_size = 4096
intermediate_size = 11008
num_hidden_layers = 32
num_attention_heads = 32
max_position_embeddings = 2048
tie_word_embeddings = 0
text hidden_act = silu
)";

constexpr const char *olmo2Norms = R"(
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
q_norm_size := q_size
k_norm_size := kv_size
post_norm := 1
)";

const std::vector<const char *> olmo2 = {
    olmo2Defaults, llamaSizes, llamaDerived, llamaSwitches, olmo2Norms, R"(
sliding 0
)"};

const std::vector<const char *> olmo3 = {
    olmo2Defaults, llamaSizes, llamaDerived, llamaSwitches, olmo2Norms, R"(
two_ropes := 1
sliding_window ?= 4096
sliding (layer+1)%4
)"};

const std::vector<const char *> exaone4 = {R"(
vocab_size = 102400
hidden_size = 4096
intermediate_size = 16384
num_hidden_layers = 32
num_attention_heads = 32
num_key_value_heads = 32
head_dim = hidden_size/num_attention_heads
max_position_embeddings = 2048
tie_word_embeddings = 0
text hidden_act = silu
)",
                                           llamaDerived, llamaSwitches, R"(
q_norm_size := head_dim
k_norm_size := head_dim
post_norm := 1
sliding_window ?= 4096
sliding_window_pattern ?= 4
sliding sliding_window&&sliding_window_pattern&&(layer+1)%sliding_window_pattern
)"};

const std::vector<const char *> smollm3 = {R"(
vocab_size = 128256
hidden_size = 2048
intermediate_size = 11008
num_hidden_layers = 36
num_attention_heads = 16
num_key_value_heads ?= 4 num_attention_heads
max_position_embeddings = 32768
tie_word_embeddings = 1
text hidden_act = silu
head_dim = hidden_size/num_attention_heads
no_rope_layer_interval = 4
use_sliding_window = 0
sliding_window ?= 0
)",
                                           llamaDerived, llamaSwitches, R"(
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
mlp_bias = 0
sliding use_sliding_window&&sliding_window&&(layer+1)%no_rope_layer_interval==0
)"};

const std::vector<const char *> arcee = {R"(
vocab_size = 32000
hidden_size = 2560
intermediate_size = 18432
num_hidden_layers = 32
num_attention_heads = 32
max_position_embeddings = 4096
tie_word_embeddings = 0
text hidden_act = relu2
)",
                                         llamaSizes, llamaDerived,
                                         llamaSwitches, R"(
ungated := 1
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
mlp_bias = 0
sliding 0
)"};

const std::vector<const char *> seedOss = {R"(
vocab_size = 155136
hidden_size = 4096
intermediate_size = 27648
num_hidden_layers = 64
num_attention_heads = 80
num_key_value_heads ?= 8 num_attention_heads
head_dim ?= 128 hidden_size/num_attention_heads
max_position_embeddings = 524288
tie_word_embeddings = 0
text hidden_act = silu
)",
                                           llamaDerived, llamaSwitches, R"(
qkv_bias|attention_bias = 1
o_bias|attention_out_bias = 0
mlp_bias = 0
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

/// Llama's classes, with what `more` adds.
std::vector<const char *> llamaClasses(std::vector<const char *> more = {}) {
  std::vector<const char *> body = {causalHead, llamaBody, layerParts,
                                    sequenceHead, tokenHead};
  body.insert(body.end(), more.begin(), more.end());
  return body;
}

} // namespace

const std::vector<Family> llamaFamilies = {
    {"llama", "Llama", llama, llamaClasses({answersTransformer})},
    {"mistral", "Mistral", mistral, llamaClasses({answersHead})},
    {"qwen2", "Qwen2", qwen2, llamaClasses({answersTransformer})},
    {"qwen3", "Qwen3", qwen3, llamaClasses({answersTransformer})},
    {"qwen2_moe", "Qwen2Moe", qwen2Moe, llamaClasses({answersHead})},
    {"qwen3_moe", "Qwen3Moe", qwen3Moe, llamaClasses({answersTransformer})},
    {"mixtral", "Mixtral", mixtral, llamaClasses({answersHead})},
    {"deepseek_v3", "DeepseekV3", deepseekV3, llamaClasses()},
    {"gemma", "Gemma", gemma, llamaClasses()},
    {"gemma2", "Gemma2", gemma2, llamaClasses()},
    {"gemma3_text",
     "Gemma3",
     gemma3,
     {gemma3Body, llamaBody, layerParts, sequenceHead, tokenHead}},
    {"phi3", "Phi3", phi3, llamaClasses()},
    {"olmo2", "Olmo2", olmo2, llamaClasses()},
    {"olmo3", "Olmo3", olmo3, llamaClasses()},
    {"exaone4", "Exaone4", exaone4, llamaClasses({answersTransformer})},
    {"arcee", "Arcee", arcee, llamaClasses({answersTransformer})},
    {"seed_oss", "SeedOss", seedOss, llamaClasses({answersTransformer})},
    {"olmoe", "Olmoe", olmoe, llamaClasses()},
    {"granite", "Granite", llama, llamaClasses()},
    {"smollm3", "SmolLM3", smollm3, llamaClasses({answersTransformer})},
};

} // namespace accel::moduletree
