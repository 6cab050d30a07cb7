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

const std::vector<const char *> clip = {R"(
hidden_size = 768
intermediate_size = 3072
num_hidden_layers = 12
num_attention_heads = 12
num_channels = 3
image_size = 224
patch_size = 32
text hidden_act = quick_gelu
patches := (image_size-image_size%patch_size)/patch_size
nosplit CLIPTextEmbeddings CLIPEncoderLayer CLIPVisionEmbeddings
)"};

constexpr const char *clipBody = R"(
$VisionModel
  @auto
  @input embeddings.patch_embedding
  embeddings $VisionEmbeddings class_embedding[hidden_size] ~position_ids[1,patches*patches+1]:i64
    patch_embedding Conv2d weight[hidden_size,num_channels,patch_size,patch_size]
    position_embedding Embedding weight[patches*patches+1,hidden_size]
  pre_layrnorm LayerNorm weight[hidden_size] bias[hidden_size]
  encoder $Encoder
    layers ModuleList
      [num_hidden_layers] $EncoderLayer
        self_attn $Attention
          k_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]
          v_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]
          q_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]
          out_proj Linear weight[hidden_size,hidden_size] bias[hidden_size]
        layer_norm1 LayerNorm weight[hidden_size] bias[hidden_size]
        mlp $MLP =twolayers
        layer_norm2 LayerNorm weight[hidden_size] bias[hidden_size]
  post_layernorm LayerNorm weight[hidden_size] bias[hidden_size]
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

const std::vector<const char *> llava = {R"(
whole_tied|tie_word_embeddings = 0
text_tied|text_config.tie_word_embeddings = 0
tie_word_embeddings := whole_tied||text_tied
text_hidden|text_config.hidden_size = 4096
text_vocabulary|text_config.vocab_size = 32000
vision_hidden|vision_config.hidden_size = 768
count vision_feature_layer = 1
multimodal_projector_bias = 1
text projector_hidden_act = gelu
)"};

constexpr const char *llavaBody = R"(
$Model
  @auto
  @input language_model.embed_tokens
  vision_tower *vision_config:clip_vision_model
  multi_modal_projector $MultiModalProjector
    linear_1 Linear weight[text_hidden,vision_hidden*vision_feature_layer] bias[text_hidden]?multimodal_projector_bias
    act !projector_hidden_act
    linear_2 Linear weight[text_hidden,text_hidden] bias[text_hidden]?multimodal_projector_bias
  language_model *text_config:llama
)";

// Qwen's. Files of before 4.52 have the language model's settings beside
// vision_config, and either place may tie the head.
constexpr const char *qwenText = R"(
vocab_size = 152064
hidden_size = 8192
intermediate_size = 29568
num_hidden_layers = 80
num_attention_heads = 64
num_key_value_heads ?= 8 num_attention_heads
max_position_embeddings = 32768
text hidden_act = silu
use_sliding_window = 0
sliding_window ?= 4096
max_window_layers = 80
q_norm_size := 0
qkv_bias := 1
mlp_bias := 0
o_bias := 0
head_dim := hidden_size/num_attention_heads
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
sliding use_sliding_window&&sliding_window&&layer>=max_window_layers
nosplit $DecoderLayer $VisionBlock
tp
)";

constexpr const char *qwen3Text = R"(
vocab_size = 151936
hidden_size = 4096
intermediate_size = 22016
num_hidden_layers = 32
num_attention_heads = 32
num_key_value_heads ?= 32 num_attention_heads
head_dim = 128
max_position_embeddings = 128000
text hidden_act = silu
attention_bias = 0
qkv_bias := attention_bias
o_bias := attention_bias
mlp_bias := 0
q_norm_size := head_dim
q_size := num_attention_heads*head_dim
kv_size := num_key_value_heads*head_dim
sliding 0
nosplit $DecoderLayer Qwen3VLVisionBlock
)";

constexpr const char *qwenTextLayers = R"(
layers
  embed_tokens Embedding weight[vocab_size,hidden_size]
  layers ModuleList
    [num_hidden_layers] $DecoderLayer
      self_attn $Attention =qkv
        o_proj Linear weight[hidden_size,q_size] bias[hidden_size]?o_bias
        q_norm $RMSNorm weight[q_norm_size] ?q_norm_size
        k_norm $RMSNorm weight[q_norm_size] ?q_norm_size
      mlp Qwen2MLP =gated ?!q_norm_size
      mlp $MLP =gated ?q_norm_size
      input_layernorm $RMSNorm weight[hidden_size]
      post_attention_layernorm $RMSNorm weight[hidden_size]
  norm $RMSNorm weight[hidden_size]
  rotary_emb $RotaryEmbedding ~inv_freq[head_dim/2] ~original_inv_freq[head_dim/2]
)";

constexpr const char *qwenTextBody = R"(
$TextModel =layers
  @auto
  @input embed_tokens
)";

constexpr const char *qwen3TextBody = R"(
$Model =layers
  @auto
  @input embed_tokens
)";

/// A frequency for each two elements of half a head: of rows, of columns.
constexpr const char *qwenTower = R"(
num_heads|num_attention_heads = 16
in_channels = 3
spatial_merge_size = 2
temporal_patch_size = 2
half_head := (width/num_heads-width/num_heads%2)/2
frequencies := (half_head+1)/2
merged := width*spatial_merge_size*spatial_merge_size
mlp_bias := 1
)";

constexpr const char *qwenTowerParts = R"(
towerattention
  qkv Linear weight[3*width,width] bias[3*width]
  proj Linear weight[width,width] bias[width]
towermerger
  0 Linear weight[merged,merged] bias[merged]
  1 GELU
  2 Linear weight[out_hidden_size,merged] bias[out_hidden_size]
)";

const std::vector<const char *> qwen2VlTower = {R"(
depth|num_hidden_layers = 32
patch_size = 14
embed_dim = 1280
hidden_size = 3584
mlp_ratio = 4
text hidden_act = quick_gelu
width := embed_dim
out_hidden_size := hidden_size
nosplit $VisionBlock
)",
                                                qwenTower};

constexpr const char *qwen2VlTowerBody = R"(
Qwen2VisionTransformerPretrainedModel
  @auto
  @input patch_embed
  patch_embed PatchEmbed
    proj Conv3d weight[width,in_channels,temporal_patch_size,patch_size,patch_size]
  rotary_pos_emb $VisionRotaryEmbedding ~inv_freq[frequencies] ~original_inv_freq[frequencies]
  blocks ModuleList
    [depth] $VisionBlock
      norm1 LayerNorm weight[width] bias[width]
      norm2 LayerNorm weight[width] bias[width]
      attn VisionAttention =towerattention
      mlp VisionMlp
        fc1 Linear weight[width*mlp_ratio,width] bias[width*mlp_ratio]
        act !hidden_act
        fc2 Linear weight[width,width*mlp_ratio] bias[width]
  merger PatchMerger
    ln_q LayerNorm weight[width] bias[width]
    mlp Sequential =towermerger
)";

const std::vector<const char *> qwen25VlTower = {R"(
depth|num_hidden_layers = 32
patch_size = 14
hidden_size = 3584
intermediate_size = 3420
out_hidden_size = 3584
text hidden_act = silu
width := hidden_size
nosplit $VisionBlock
)",
                                                 qwenTower};

constexpr const char *qwen25VlTowerBody = R"(
Qwen2_5_VisionTransformerPretrainedModel
  @auto
  @input patch_embed
  patch_embed Qwen2_5_VisionPatchEmbed
    proj Conv3d weight[width,in_channels,temporal_patch_size,patch_size,patch_size]
  rotary_pos_emb $VisionRotaryEmbedding ~inv_freq[frequencies] ~original_inv_freq[frequencies]
  blocks ModuleList
    [depth] $VisionBlock
      norm1 $RMSNorm weight[width]
      norm2 $RMSNorm weight[width]
      attn $VisionAttention =towerattention
      mlp $MLP =gated
  merger $PatchMerger
    ln_q $RMSNorm weight[width]
    mlp Sequential =towermerger
)";

const std::vector<const char *> qwen3VlTower = {R"(
depth|num_hidden_layers = 27
hidden_size = 1152
intermediate_size = 4304
out_hidden_size = 3584
num_position_embeddings = 2304
patch_size = 16
count deepstack_visual_indexes = 3
text hidden_act = gelu_pytorch_tanh
deepstack := 1
width := hidden_size
nosplit $TextDecoderLayer $VisionBlock
)",
                                                qwenTower};

/// Qwen3.5's tower is Qwen3-VL's without what gives inner layers' features.
constexpr const char *qwen3VlTowerBody = R"(
$VisionModel
  @auto
  @input patch_embed
  patch_embed $VisionPatchEmbed
    proj Conv3d weight[width,in_channels,temporal_patch_size,patch_size,patch_size] bias[width]
  pos_embed Embedding weight[num_position_embeddings,width]
  rotary_pos_emb $VisionRotaryEmbedding ~inv_freq[frequencies] ~original_inv_freq[frequencies]
  blocks ModuleList
    [depth] $VisionBlock
      norm1 LayerNorm weight[width] bias[width]
      norm2 LayerNorm weight[width] bias[width]
      attn $VisionAttention =towerattention
      mlp $VisionMLP
        linear_fc1 Linear weight[intermediate_size,width] bias[intermediate_size]
        linear_fc2 Linear weight[width,intermediate_size] bias[width]
        act_fn !hidden_act
  merger $VisionPatchMerger
    norm LayerNorm weight[width] bias[width]
    linear_fc1 Linear weight[merged,merged] bias[merged]
    act_fn GELU
    linear_fc2 Linear weight[out_hidden_size,merged] bias[out_hidden_size]
  deepstack_merger_list ModuleList ?deepstack
    [deepstack_visual_indexes] $VisionPatchMerger
      norm LayerNorm weight[merged] bias[merged]
      linear_fc1 Linear weight[merged,merged] bias[merged]
      act_fn GELU
      linear_fc2 Linear weight[out_hidden_size,merged] bias[out_hidden_size]
)";

const std::vector<const char *> qwen35Tower = {R"(
depth|num_hidden_layers = 27
hidden_size = 1152
intermediate_size = 4304
out_hidden_size = 3584
num_position_embeddings = 2304
patch_size = 16
text hidden_act = gelu_pytorch_tanh
deepstack := 0
deepstack_visual_indexes := 0
width := hidden_size
nosplit $DecoderLayer $VisionBlock
)",
                                               qwenTower};

const std::vector<const char *> qwen2Vl = {R"(
whole_tied|tie_word_embeddings = 0
text_tied|text_config.tie_word_embeddings = 0
tie_word_embeddings := whole_tied||text_tied
text_hidden|text_config.hidden_size|hidden_size = 8192
text_vocabulary|text_config.vocab_size|vocab_size = 152064
)"};

const std::vector<const char *> qwen3Vl = {R"(
tie_word_embeddings = 0
text_hidden|text_config.hidden_size = 4096
text_vocabulary|text_config.vocab_size = 151936
)"};

const std::vector<const char *> qwen35 = {R"(
tie_word_embeddings = 0
text_hidden|text_config.hidden_size = 4096
text_vocabulary|text_config.vocab_size = 248320
)"};

const std::vector<const char *> qwen35Moe = {R"(
tie_word_embeddings = 0
text_hidden|text_config.hidden_size = 2048
text_vocabulary|text_config.vocab_size = 248320
)"};

constexpr const char *qwen2VlBody = R"(
$Model
  @auto
  @input language_model.embed_tokens
  visual *vision_config:qwen2_vl_vision
  language_model *text_config?:qwen2_vl_text
)";

constexpr const char *qwen25VlBody = R"(
$Model
  @auto
  @input language_model.embed_tokens
  visual *vision_config:qwen2_5_vl_vision
  language_model *text_config?:qwen2_5_vl_text
)";

constexpr const char *qwen3VlBody = R"(
$Model
  @auto
  @input language_model.embed_tokens
  visual *vision_config:qwen3_vl_vision
  language_model *text_config:qwen3_vl_text
)";

constexpr const char *qwen35Body = R"(
$Model
  @auto
  @input language_model.embed_tokens
  visual *vision_config:qwen3_5_vision
  language_model *text_config:qwen3_5_text
)";

constexpr const char *qwen35MoeBody = R"(
$Model
  @auto
  @input language_model.embed_tokens
  visual *vision_config:qwen3_5_moe_vision
  language_model *text_config:qwen3_5_moe_text
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
    {"clip_vision_model", "CLIP", clip, {clipBody, layerParts}, "clip"},
    {"llava", "Llava", llava, {wrappedHead, llavaBody}},
    {"qwen2_vl_vision",
     "Qwen2VL",
     qwen2VlTower,
     {qwen2VlTowerBody, qwenTowerParts}},
    {"qwen2_vl_text",
     "Qwen2VL",
     {qwenText},
     {qwenTextBody, qwenTextLayers, layerParts}},
    {"qwen2_vl", "Qwen2VL", qwen2Vl, {wrappedHead, qwen2VlBody}},
    {"qwen2_5_vl_vision",
     "Qwen2_5_VL",
     qwen25VlTower,
     {qwen25VlTowerBody, qwenTowerParts, layerParts}},
    {"qwen2_5_vl_text",
     "Qwen2_5_VL",
     {qwenText},
     {qwenTextBody, qwenTextLayers, layerParts}},
    {"qwen2_5_vl", "Qwen2_5_VL", qwen2Vl, {wrappedHead, qwen25VlBody}},
    {"qwen3_vl_vision",
     "Qwen3VL",
     qwen3VlTower,
     {qwen3VlTowerBody, qwenTowerParts}},
    {"qwen3_vl_text",
     "Qwen3VLText",
     {qwen3Text},
     {qwen3TextBody, qwenTextLayers, layerParts}},
    {"qwen3_vl", "Qwen3VL", qwen3Vl, {wrappedHead, qwen3VlBody}},
    {"qwen3_5_vision",
     "Qwen3_5",
     qwen35Tower,
     {qwen3VlTowerBody, qwenTowerParts}},
    {"qwen3_5_moe_vision",
     "Qwen3_5Moe",
     qwen35Tower,
     {qwen3VlTowerBody, qwenTowerParts}},
    {"qwen3_5", "Qwen3_5", qwen35, {wrappedHead, qwen35Body}},
    {"qwen3_5_moe", "Qwen3_5Moe", qwen35Moe, {wrappedHead, qwen35MoeBody}},
};

} // namespace accel::moduletree
