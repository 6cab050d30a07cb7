//===- EncoderFamilies.cpp - Encoders and encoder-decoders as data --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// From transformers 5.23, like LlamaFamilies.cpp.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/SharedParts.h"

namespace accel::moduletree {

namespace {

constexpr const char *bertSettings = R"(
hidden_size = 768
intermediate_size = 3072
num_hidden_layers = 12
num_attention_heads = 12
max_position_embeddings = 512
type_vocab_size = 2
tie_word_embeddings = 1
add_cross_attention = 0
text hidden_act = gelu
nosplit $Embeddings $Layer
)";

const std::vector<const char *> bert = {"vocab_size = 30522\nroberta := 0",
                                        bertSettings};

const std::vector<const char *> roberta = {"vocab_size = 50265\nroberta := 1",
                                           bertSettings};

constexpr const char *bertParts = R"(
model
  embeddings $Embeddings ~position_ids[1,max_position_embeddings]:i64 ~token_type_ids[1,max_position_embeddings]:i64
    word_embeddings Embedding weight[vocab_size,hidden_size]
    position_embeddings Embedding weight[max_position_embeddings,hidden_size] ?!roberta
    token_type_embeddings Embedding weight[type_vocab_size,hidden_size]
    LayerNorm LayerNorm weight[hidden_size] bias[hidden_size]
    dropout Dropout
    position_embeddings Embedding weight[max_position_embeddings,hidden_size] ?roberta
  encoder $Encoder
    layer ModuleList
      [num_hidden_layers] $Layer
        attention $Attention
          self $SelfAttention =selfattention
          output $SelfOutput =selfoutput
        crossattention $Attention ?add_cross_attention
          self $CrossAttention =selfattention
          output $SelfOutput =selfoutput
        intermediate $Intermediate
          dense Linear weight[intermediate_size,hidden_size] bias[intermediate_size]
          intermediate_act_fn !hidden_act
        output $Output
          dense Linear weight[hidden_size,intermediate_size] bias[hidden_size]
          LayerNorm LayerNorm weight[hidden_size] bias[hidden_size]
          dropout Dropout
selfattention
  query Linear weight[hidden_size,hidden_size] bias[hidden_size]
  key Linear weight[hidden_size,hidden_size] bias[hidden_size]
  value Linear weight[hidden_size,hidden_size] bias[hidden_size]
  dropout Dropout
selfoutput
  dense Linear weight[hidden_size,hidden_size] bias[hidden_size]
  LayerNorm LayerNorm weight[hidden_size] bias[hidden_size]
  dropout Dropout
pooler
  dense Linear weight[hidden_size,hidden_size] bias[hidden_size]
  activation Tanh
predictions
  transform $PredictionHeadTransform
    dense Linear weight[hidden_size,hidden_size] bias[hidden_size]
    transform_act_fn !hidden_act
    LayerNorm LayerNorm weight[hidden_size] bias[hidden_size]
  decoder Linear weight[vocab_size,hidden_size] bias[vocab_size]
robertahead
  dense Linear weight[hidden_size,hidden_size] bias[hidden_size]
  layer_norm LayerNorm weight[hidden_size] bias[hidden_size]
  decoder Linear weight[vocab_size,hidden_size] bias[vocab_size]
)";

constexpr const char *bertBody = R"(
$ForMaskedLM
  @base %
  @output cls.predictions.decoder
  @tie cls.predictions.decoder.weight @input.weight ?tie_word_embeddings
  @tie cls.predictions.decoder.bias cls.predictions.bias ?tie_word_embeddings
  % $Model =model
  cls $OnlyMLMHead
    predictions $LMPredictionHead bias[vocab_size] =predictions
$LMHeadModel
  @base %
  @output cls.predictions.decoder
  @tie cls.predictions.decoder.weight @input.weight ?tie_word_embeddings
  @tie cls.predictions.decoder.bias cls.predictions.bias ?tie_word_embeddings
  % $Model =model
  cls $OnlyMLMHead
    predictions $LMPredictionHead bias[vocab_size] =predictions
$ForPreTraining
  @base %
  @output cls.predictions.decoder
  @tie cls.predictions.decoder.weight @input.weight ?tie_word_embeddings
  @tie cls.predictions.decoder.bias cls.predictions.bias ?tie_word_embeddings
  % $Model
  cls $PreTrainingHeads
    predictions $LMPredictionHead bias[vocab_size] =predictions
    seq_relationship Linear weight[2,hidden_size] bias[2]
$ForSequenceClassification
  @base %
  % $Model
  dropout Dropout
  classifier Linear weight[num_labels,hidden_size] bias[num_labels]
$ForNextSentencePrediction
  @base %
  % $Model
  cls $OnlyNSPHead
    seq_relationship Linear weight[2,hidden_size] bias[2]
)";

constexpr const char *robertaBody = R"(
$ForMaskedLM
  @base %
  @output lm_head.decoder
  @tie lm_head.decoder.weight @input.weight ?tie_word_embeddings
  @tie lm_head.decoder.bias lm_head.bias ?tie_word_embeddings
  % $Model =model
  lm_head $LMHead bias[vocab_size] =robertahead
$ForCausalLM
  @base %
  @output lm_head.decoder
  @tie lm_head.decoder.weight @input.weight ?tie_word_embeddings
  @tie lm_head.decoder.bias lm_head.bias ?tie_word_embeddings
  % $Model =model
  lm_head $LMHead bias[vocab_size] =robertahead
$ForSequenceClassification
  @base %
  % $Model =model
  classifier $ClassificationHead
    dense Linear weight[hidden_size,hidden_size] bias[hidden_size]
    dropout Dropout
    out_proj Linear weight[num_labels,hidden_size] bias[num_labels]
)";

// The first class is the default one: bertHeads goes behind a family's own.
constexpr const char *bertHeads = R"(
$Model =model
  @auto
  @input embeddings.word_embeddings
  pooler $Pooler =pooler
$ForMultipleChoice
  @base %
  % $Model
  dropout Dropout
  classifier Linear weight[1,hidden_size] bias[1]
$ForTokenClassification
  @base %
  % $Model =model
  dropout Dropout
  classifier Linear weight[num_labels,hidden_size] bias[num_labels]
$ForQuestionAnswering
  @base %
  % $Model =model
  qa_outputs Linear weight[num_labels,hidden_size] bias[num_labels]
)";

const std::vector<const char *> distilbert = {R"(
vocab_size = 30522
hidden_size|dim = 768
hidden_dim = 3072
num_hidden_layers|n_layers = 6
num_attention_heads|n_heads = 12
max_position_embeddings = 512
tie_word_embeddings = 1
text activation = gelu
)"};

constexpr const char *distilbertBody = R"(
$ForMaskedLM
  @base %
  @output vocab_projector
  @tie vocab_projector.weight @input.weight ?tie_word_embeddings
  activation !activation
  % $Model
  vocab_transform Linear weight[hidden_size,hidden_size] bias[hidden_size]
  vocab_layer_norm LayerNorm weight[hidden_size] bias[hidden_size]
  vocab_projector Linear weight[vocab_size,hidden_size] bias[vocab_size]
  mlm_loss_fct CrossEntropyLoss
$Model
  @auto
  @input embeddings.word_embeddings
  embeddings Embeddings ~position_ids[1,max_position_embeddings]:i64
    word_embeddings Embedding weight[vocab_size,hidden_size]
    position_embeddings Embedding weight[max_position_embeddings,hidden_size]
    LayerNorm LayerNorm weight[hidden_size] bias[hidden_size]
    dropout Dropout
  transformer Transformer
    layer ModuleList
      [num_hidden_layers] TransformerBlock
        attention $SelfAttention
          q_lin Linear weight[hidden_size,hidden_size] bias[hidden_size]
          k_lin Linear weight[hidden_size,hidden_size] bias[hidden_size]
          v_lin Linear weight[hidden_size,hidden_size] bias[hidden_size]
          out_lin Linear weight[hidden_size,hidden_size] bias[hidden_size]
          dropout Dropout
        sa_layer_norm LayerNorm weight[hidden_size] bias[hidden_size]
        ffn FFN
          dropout Dropout
          lin1 Linear weight[hidden_dim,hidden_size] bias[hidden_dim]
          lin2 Linear weight[hidden_size,hidden_dim] bias[hidden_size]
          activation !activation
        output_layer_norm LayerNorm weight[hidden_size] bias[hidden_size]
$ForSequenceClassification
  @base %
  % $Model
  pre_classifier Linear weight[hidden_size,hidden_size] bias[hidden_size]
  classifier Linear weight[num_labels,hidden_size] bias[num_labels]
  dropout Dropout
)";

const std::vector<const char *> vit = {R"(
hidden_size = 768
intermediate_size = 3072
num_hidden_layers = 12
num_attention_heads = 12
image_size = 224
patch_size = 16
num_channels = 3
qkv_bias = 1
pooler_output_size = hidden_size
inner := hidden_size/num_attention_heads*num_attention_heads
patches := (image_size/patch_size)*(image_size/patch_size)
text hidden_act = gelu
text pooler_act = tanh
nosplit $Embeddings $Layer
)"};

constexpr const char *vitBody = R"(
$ForImageClassification
  @base %
  % $Model =model
  classifier Linear weight[num_labels,hidden_size] bias[num_labels]
$Model =model
  @auto
  @input embeddings.patch_embeddings
  pooler $Pooler
    dense Linear weight[pooler_output_size,hidden_size] bias[pooler_output_size]
    activation !pooler_act
model
  embeddings $Embeddings cls_token[1,1,hidden_size] position_embeddings[1,patches+1,hidden_size]
    patch_embeddings $PatchEmbeddings
      projection Conv2d weight[hidden_size,num_channels,patch_size,patch_size] bias[hidden_size]
    dropout Dropout
  layers ModuleList
    [num_hidden_layers] $Layer
      attention $Attention
        q_proj Linear weight[inner,hidden_size] bias[inner]?qkv_bias
        k_proj Linear weight[inner,hidden_size] bias[inner]?qkv_bias
        v_proj Linear weight[inner,hidden_size] bias[inner]?qkv_bias
        o_proj Linear weight[hidden_size,inner] bias[hidden_size]
      layernorm_before LayerNorm weight[hidden_size] bias[hidden_size]
      layernorm_after LayerNorm weight[hidden_size] bias[hidden_size]
      mlp $MLP =twolayers
      dropout Dropout
  layernorm LayerNorm weight[hidden_size] bias[hidden_size]
)";

const std::vector<const char *> t5 = {R"(
vocab_size = 32128
hidden_size|d_model = 512
d_kv = 64
d_ff = 2048
num_hidden_layers|num_layers = 6
num_decoder_layers = num_hidden_layers
num_attention_heads|num_heads = 8
relative_attention_num_buckets = 32
inner := num_attention_heads*d_kv
text feed_forward_proj = relu
text dense_act_fn|feed_forward_proj = relu
starts feed_forward_gated feed_forward_proj gated-
is_gated_act = feed_forward_gated
nosplit $Block
fp32 wo
)"};

constexpr const char *t5Body = R"(
$ForConditionalGeneration
  @input shared
  @output lm_head
  @tie encoder.embed_tokens.weight shared.weight
  @tie decoder.embed_tokens.weight shared.weight
  @tie lm_head.weight shared.weight
  shared Embedding weight[vocab_size,hidden_size]
  encoder $Stack =encoder
  decoder $Stack =decoder
  lm_head Linear weight[vocab_size,hidden_size]
$Model =both
  @auto
  @input shared
  @tie encoder.embed_tokens.weight shared.weight
  @tie decoder.embed_tokens.weight shared.weight
$EncoderModel =encoderonly
  @input shared
  @tie encoder.embed_tokens.weight shared.weight
$ForSequenceClassification
  @base %
  @tie %.encoder.embed_tokens.weight @input.weight
  @tie %.decoder.embed_tokens.weight @input.weight
  % $Model
  classification_head $ClassificationHead
    dense Linear weight[hidden_size,hidden_size] bias[hidden_size]
    dropout Dropout
    out_proj Linear weight[num_labels,hidden_size] bias[num_labels]
$ForTokenClassification
  @base %
  @tie %.encoder.embed_tokens.weight @input.weight
  % $EncoderModel
  dropout Dropout
  classifier Linear weight[num_labels,hidden_size] bias[num_labels]
both
  shared Embedding weight[vocab_size,hidden_size]
  encoder $Stack =encoder
  decoder $Stack =decoder
encoderonly
  shared Embedding weight[vocab_size,hidden_size]
  encoder $Stack =encoder
encoder
  embed_tokens Embedding weight[vocab_size,hidden_size]
  block ModuleList
    [num_hidden_layers] $Block
      layer ModuleList
        0 $LayerSelfAttention =selfattention
        1 $LayerFF =feedforward
  final_layer_norm $LayerNorm weight[hidden_size]
  dropout Dropout
decoder
  embed_tokens Embedding weight[vocab_size,hidden_size]
  block ModuleList
    [num_decoder_layers] $Block
      layer ModuleList
        0 $LayerSelfAttention =selfattention
        1 $LayerCrossAttention
          EncDecAttention $Attention =projections
          layer_norm $LayerNorm weight[hidden_size]
          dropout Dropout
        2 $LayerFF =feedforward
  final_layer_norm $LayerNorm weight[hidden_size]
  dropout Dropout
selfattention
  SelfAttention $Attention =projections
    relative_attention_bias Embedding weight[relative_attention_num_buckets,num_attention_heads] ?layer==0
  layer_norm $LayerNorm weight[hidden_size]
  dropout Dropout
projections
  q Linear weight[inner,hidden_size]
  k Linear weight[inner,hidden_size]
  v Linear weight[inner,hidden_size]
  o Linear weight[hidden_size,inner]
feedforward
  DenseReluDense $DenseGatedActDense ?is_gated_act
    wi_0 Linear weight[d_ff,hidden_size]
    wi_1 Linear weight[d_ff,hidden_size]
    wo Linear weight[hidden_size,d_ff]
    dropout Dropout
    act !dense_act_fn
  DenseReluDense $DenseActDense ?!is_gated_act
    wi Linear weight[d_ff,hidden_size]
    wo Linear weight[hidden_size,d_ff]
    dropout Dropout
    act !dense_act_fn
  layer_norm $LayerNorm weight[hidden_size]
  dropout Dropout
)";

} // namespace

const std::vector<Family> encoderFamilies = {
    {"bert", "Bert", bert, {bertBody, bertHeads, bertParts}, "bert"},
    {"roberta",
     "Roberta",
     roberta,
     {robertaBody, bertHeads, bertParts},
     "roberta"},
    {"distilbert",
     "DistilBert",
     distilbert,
     {distilbertBody, tokenClassifier},
     "distilbert"},
    {"vit", "ViT", vit, {vitBody, layerParts}, "vit"},
    {"t5", "T5", t5, {t5Body}, "transformer"},
};

} // namespace accel::moduletree
