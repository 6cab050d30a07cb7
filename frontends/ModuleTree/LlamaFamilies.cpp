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

#include "frontends/ModuleTree/LlamaBody.h"

namespace accel::moduletree {

namespace {

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

const std::vector<const char *> ministral3 = {R"(
vocab_size = 131072
hidden_size = 4096
intermediate_size = 14336
num_hidden_layers = 34
num_attention_heads = 32
num_key_value_heads ?= 8 num_attention_heads
max_position_embeddings = 262144
tie_word_embeddings = 0
text hidden_act = silu
head_dim ?= 128 hidden_size/num_attention_heads
)",
                                              llamaDerived, llamaSwitches, R"(
sliding_window ?= 0
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

const std::vector<const char *> hunyuanDense = {R"(
vocab_size = 290943
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
turned_norms := 1
tp none
sliding 0
)"};

const std::vector<const char *> ernie45 = {R"(
vocab_size = 103424
hidden_size = 1024
intermediate_size = 3072
num_hidden_layers = 18
num_attention_heads = 16
num_key_value_heads ?= 2 num_attention_heads
head_dim ?= 128 hidden_size/num_attention_heads
max_position_embeddings = 131072
tie_word_embeddings = 1
text hidden_act = silu
)",
                                           llamaDerived, llamaSwitches, R"(
use_bias = 0
qkv_bias := use_bias
o_bias := use_bias
mlp_bias := use_bias
sliding 0
)"};

} // namespace

const std::vector<Family> llamaFamilies = {
    {"llama", "Llama", llama, llamaClasses({answersTransformer})},
    {"mistral", "Mistral", mistral, llamaClasses({answersHead})},
    {"ministral", "Ministral", mistral, llamaClasses({answersTransformer})},
    {"ministral3", "Ministral3", ministral3, llamaClasses({answersHead})},
    {"qwen2", "Qwen2", qwen2, llamaClasses({answersTransformer})},
    {"qwen3", "Qwen3", qwen3, llamaClasses({answersTransformer})},
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
    {"hunyuan_v1_dense",
     "HunYuanDenseV1",
     hunyuanDense,
     {causalHead, llamaBody, layerParts, sequenceHead}},
    {"ernie4_5", "Ernie4_5", ernie45, {causalHead, llamaBody, layerParts}},
    {"granite", "Granite", llama, llamaClasses()},
    {"smollm3", "SmolLM3", smollm3, llamaClasses({answersTransformer})},
};

} // namespace accel::moduletree
