//===- GptFamilies.cpp - Decoders with names of their own -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/GptFamilies.h"

#include "dialects/Aten/Eager.h"
#include "frontends/HuggingFace/EncoderConfig.h"

using namespace accel;
using namespace accel::huggingface;

void GptFamilyReader::jointAttention(DecoderAttention::Layout layout,
                                     const char *path, const char *joint,
                                     const char *output) {
  d.attention.layout = layout;
  d.attention.path = path;
  d.attention.joint = joint;
  d.attention.output = output;
}

void GptFamilyReader::gptBigcode() {
  d.residualInitByDepth = true;
  d.embedding = "transformer.wte";
  d.positions = "transformer.wpe";
  d.layers = "transformer.h";
  d.finalNorm = "transformer.ln_f";
  layerNorms("ln_1", "ln_2");
  jointAttention(DecoderAttention::Layout::Groups, "attn", "attn.c_attn",
                 "attn.c_proj");
  plainMlp("mlp", "mlp.c_fc", "mlp.c_proj", "mlp.act");
  d.keyValueHeads = flag("multi_query") ? 1 : d.heads;
  if (flag("add_cross_attention"))
    json.unsupported("add_cross_attention",
                     "'add_cross_attention' is not supported yet");
  if (!json.flag("scale_attn_weights", true))
    d.attention.scale = 1;
  d.residualFirst = false;
  d.dropout.embedding = dropout("embd_pdrop", 0.1);
  d.dropout.attention = dropout("attn_pdrop", 0.1);
  d.dropout.attentionOutput = d.dropout.mlpOutput = dropout("resid_pdrop", 0.1);
}

void GptFamilyReader::gptNeox() {
  d.embedding = "gpt_neox.embed_in";
  storedHead = "embed_out.weight";
  d.layers = "gpt_neox.layers";
  d.finalNorm = "gpt_neox.final_layer_norm";
  d.rotary = "gpt_neox.rotary_emb";
  layerNorms("input_layernorm", "post_attention_layernorm");
  jointAttention(DecoderAttention::Layout::Groups, "attention",
                 "attention.query_key_value", "attention.dense");
  plainMlp("mlp", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", "mlp.act");
  d.parallel = json.flag("use_parallel_residual", true);
  d.residualFirst = false;
  d.dropout.embedding = d.dropout.attentionOutput = d.dropout.mlpOutput =
      dropout("hidden_dropout");
  d.dropout.attention = dropout("attention_dropout");
  RopeNames names;
  names.theta = "rotary_emb_base";
  names.partial = "rotary_pct";
  names.defaultPartial = 0.25;
  names.partialAllowed = true;
  rope(names);
}

void GptFamilyReader::opt() {
  d.embedding = "model.decoder.embed_tokens";
  d.positions = "model.decoder.embed_positions";
  d.positionOffset = 2;
  d.positionsOfMask = true;
  d.layers = "model.decoder.layers";
  bool before = flag("do_layer_norm_before");
  d.norm = Decoder::Norm::Layer;
  d.finalNorm = before && !flag("_remove_final_layer_norm")
                    ? "model.decoder.final_layer_norm"
                    : "";
  (before ? d.beforeAttention : d.afterAttention) = "self_attn_layer_norm";
  (before ? d.beforeMlp : d.afterMlp) = "final_layer_norm";
  if (size("word_embed_proj_dim") != d.hiddenSize) {
    d.projectIn = "model.decoder.project_in";
    d.projectOut = "model.decoder.project_out";
  }
  if (!flag("layer_norm_elementwise_affine"))
    json.unsupported("layer_norm_elementwise_affine",
                     "layer norms without weights are not supported yet");
  d.attention.path = "self_attn";
  d.attention.query = "self_attn.q_proj";
  d.attention.key = "self_attn.k_proj";
  d.attention.value = "self_attn.v_proj";
  d.attention.output = "self_attn.out_proj";
  d.attention.queryScale = d.attention.scale;
  d.attention.scale = 1;
  plainMlp("", "fc1", "fc2", "activation_fn");
  d.dropout.attentionOutput = d.dropout.mlpOutput = dropout("dropout", 0.1);
  d.dropout.attention = dropout("attention_dropout");
  if (json.number("layerdrop", 0) != 0)
    json.unsupported("layerdrop", "'layerdrop' is not supported yet");
}

void GptFamilyReader::falcon() {
  d.embedding = "transformer.word_embeddings";
  d.layers = "transformer.h";
  d.finalNorm = "transformer.ln_f";
  d.rotary = "transformer.rotary_emb";
  bool modern = flag("new_decoder_architecture");
  bool twoNorms = flag("two_norms");
  d.parallel = flag("parallel_attn");
  if (modern && !d.parallel)
    json.error("parallel_attn", "'new_decoder_architecture' needs "
                                "'parallel_attn'");
  if (!modern && twoNorms)
    json.error("num_ln_in_parallel_attn", "'num_ln_in_parallel_attn' 2 needs "
                                          "'new_decoder_architecture'");
  const char *norm = twoNorms ? "ln_attn" : "input_layernorm";
  layerNorms(norm, !d.parallel ? "post_attention_layernorm"
                   : twoNorms  ? "ln_mlp"
                               : norm);
  d.biasApart = true;
  jointAttention(DecoderAttention::Layout::Groups, "self_attention",
                 "self_attention.query_key_value", "self_attention.dense");
  plainMlp("mlp", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", "mlp.act");
  int64_t groups = size("num_kv_heads");
  if (modern && (groups < 1 || d.heads % groups))
    json.error("num_kv_heads", "the " + std::to_string(d.heads) +
                                   " heads are not a multiple of "
                                   "'num_kv_heads' " +
                                   std::to_string(groups));
  if (!modern && !flag("multi_query") && groups != d.heads)
    json.error("num_kv_heads",
               "'num_kv_heads' needs 'new_decoder_architecture'");
  d.keyValueHeads = modern ? groups : flag("multi_query") ? 1 : d.heads;
  // transformers drops attention weights with alibi alone.
  const double attention = dropout("attention_dropout");
  d.dropout.attention = flag("alibi") ? attention : 0;
  d.dropout.attentionOutput = d.parallel ? 0 : attention;
  (d.parallel ? d.dropout.blocks : d.dropout.mlpOutput) =
      dropout("hidden_dropout");
  d.attention.listed = modern || flag("multi_query");
  d.attention.repeated = modern;
  d.attention.masked =
      (flag("alibi") ? aten::maskAdded : aten::maskAlways).str();
  if (flag("alibi"))
    d.alibi = Decoder::Alibi::Falcon;
  else
    rope();
}

void GptFamilyReader::mpt() {
  d.embedding = "transformer.wte";
  d.layers = "transformer.blocks";
  d.finalNorm = "transformer.norm_f";
  layerNorms("norm_1", "norm_2");
  jointAttention(DecoderAttention::Layout::Rows, "attn", "attn.Wqkv",
                 "attn.out_proj");
  d.attention.byParts = true;
  d.attention.masked = aten::maskFilled.str();
  d.residualFirst = false;
  if (double scale = number("softmax_scale"))
    d.attention.scale = scale;
  if (number("clip_qkv") != 0)
    json.unsupported("attn_config.clip_qkv",
                     "a clipped projection is not supported yet; 'clip_qkv' "
                     "must be null");
  plainMlp("ffn", "ffn.up_proj", "ffn.down_proj", "ffn.act");
  d.mlp.activation = Activation::Gelu;
  d.alibi = Decoder::Alibi::Mpt;
  if (number("alibi_bias_max") != 8)
    json.warning("attn_config.alibi_bias_max", "ignored-key",
                 "'alibi_bias_max' has no effect: transformers takes 8");
  d.dropout.attention = d.dropout.attentionOutput = d.dropout.mlpOutput =
      dropout("attn_config.attn_pdrop");
}
