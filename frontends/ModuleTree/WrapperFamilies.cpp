//===- WrapperFamilies.cpp - Language models with towers as data ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Models that read images beside tokens, and their towers: from transformers
// 5.23, like LlamaFamilies.cpp. The language model and the tower are what
// AutoModel makes of `text_config` and `vision_config`.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/SharedParts.h"

namespace accel::moduletree {

namespace {

const std::vector<const char *> siglip = {R"(
hidden_size = 768
intermediate_size = 3072
num_hidden_layers = 12
num_attention_heads = 12
num_channels = 3
image_size = 224
patch_size = 16
vision_use_head = 1
text hidden_act = gelu_pytorch_tanh
patches := (image_size-image_size%patch_size)/patch_size
nosplit SiglipTextEmbeddings SiglipVisionEmbeddings SiglipEncoderLayer SiglipMultiheadAttentionPoolingHead
)"};

constexpr const char *siglipBody = R"(
$VisionModel
  @auto
  @input embeddings.patch_embedding
  embeddings $VisionEmbeddings ~position_ids[1,patches*patches]:i64
    patch_embedding Conv2d weight[hidden_size,num_channels,patch_size,patch_size] bias[hidden_size]
    position_embedding Embedding weight[patches*patches,hidden_size]
  encoder $Encoder
    layers ModuleList
      [num_hidden_layers] $EncoderLayer
        layer_norm1 LayerNorm weight[hidden_size] bias[hidden_size]
        self_attn $Attention
          k_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]
          v_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]
          q_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]
          out_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]
        layer_norm2 LayerNorm weight[hidden_size] bias[hidden_size]
        mlp $MLP =twolayers
  post_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
  head $MultiheadAttentionPoolingHead probe[1,1,hidden_size] ?vision_use_head
    attention MultiheadAttention in_proj_weight[3*hidden_size,hidden_size] in_proj_bias[3*hidden_size]
      out_proj NonDynamicallyQuantizableLinear weight[hidden_size,hidden_size] bias[hidden_size]
    layernorm LayerNorm weight[hidden_size] bias[hidden_size]
    mlp $MLP =twolayers
)";

const std::vector<const char *> pixtral = {R"(
hidden_size = 1024
intermediate_size = 4096
num_hidden_layers = 24
num_attention_heads = 16
num_channels = 3
image_size = 1024
patch_size = 16
text hidden_act = gelu
mlp_bias := 0
nosplit PixtralAttentionLayer
)"};

constexpr const char *pixtralBody = R"(
$VisionModel
  @auto
  @input patch_conv
  patch_conv Conv2d weight[hidden_size,num_channels,patch_size,patch_size]
  ln_pre $RMSNorm weight[hidden_size]
  transformer $Transformer
    layers ModuleList
      [num_hidden_layers] $AttentionLayer
        attention_norm $RMSNorm weight[hidden_size]
        feed_forward $MLP =gated
        attention $Attention
          k_proj Linear weight[hidden_size,hidden_size]
          v_proj Linear weight[hidden_size,hidden_size]
          q_proj Linear weight[hidden_size,hidden_size]
          o_proj Linear weight[hidden_size,hidden_size]
        ffn_norm $RMSNorm weight[hidden_size]
  patch_positional_embedding $VisionRotaryEmbedding ~inv_freq[hidden_size/num_attention_heads/2] ~original_inv_freq[hidden_size/num_attention_heads/2]
)";

/// The head of the whole is tied by its own switch, not by the language
/// model's.
constexpr const char *wrappedHead = R"(
$ForConditionalGeneration
  @base %
  @output lm_head
  @tie lm_head.weight @input.weight ?tie_word_embeddings
  % $Model
  lm_head Linear weight[text_vocabulary,text_hidden]
)";

const std::vector<const char *> gemma3 = {R"(
tie_word_embeddings = 1
text_hidden|text_config.hidden_size = 2304
text_vocabulary|text_config.vocab_size = 262208
vision_hidden|vision_config.hidden_size = 768
)"};

constexpr const char *gemma3Body = R"(
$Model
  @auto
  @input language_model.embed_tokens
  vision_tower *vision_config:siglip_vision_model
  multi_modal_projector $MultiModalProjector mm_input_projection_weight[vision_hidden,text_hidden]
    mm_soft_emb_norm $RMSNorm weight[vision_hidden]
    avg_pool AvgPool2d
  language_model *text_config:gemma3_text
)";

const std::vector<const char *> mistral3 = {R"(
tie_word_embeddings = 1
text_hidden|text_config.hidden_size = 4096
text_vocabulary|text_config.vocab_size = 32000
vision_hidden|vision_config.hidden_size = 1024
spatial_merge_size = 2
multimodal_projector_bias = 0
text projector_hidden_act = gelu
)"};

constexpr const char *mistral3Body = R"(
$Model
  @auto
  @input language_model.embed_tokens
  vision_tower *vision_config:pixtral
  multi_modal_projector $MultiModalProjector
    norm $RMSNorm weight[vision_hidden]
    patch_merger $PatchMerger
      merging_layer Linear weight[vision_hidden,vision_hidden*spatial_merge_size*spatial_merge_size]
    linear_1 Linear weight[text_hidden,vision_hidden] bias[text_hidden]?multimodal_projector_bias
    act !projector_hidden_act
    linear_2 Linear weight[text_hidden,text_hidden] bias[text_hidden]?multimodal_projector_bias
  language_model *text_config:mistral
)";

} // namespace

const std::vector<Family> wrapperFamilies = {
    {"siglip_vision_model",
     "Siglip",
     siglip,
     {siglipBody, layerParts},
     "vision_model"},
    {"pixtral",
     "Pixtral",
     pixtral,
     {pixtralBody, layerParts},
     "vision_encoder"},
    {"gemma3", "Gemma3", gemma3, {wrappedHead, gemma3Body}},
    {"mistral3", "Mistral3", mistral3, {wrappedHead, mistral3Body}},
};

} // namespace accel::moduletree
