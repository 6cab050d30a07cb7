//===- DeltaConfig.cpp - Gated delta rules of a config.json ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/EncoderConfig.h"
#include "frontends/HuggingFace/ExpertFamilies.h"

using namespace accel;
using namespace accel::huggingface;

void DecoderReader::delta() {
  DeltaMixer &m = d.delta;
  m.path = "linear_attn";
  m.convolution = "linear_attn.conv1d";
  m.norm = "linear_attn.norm";
  m.out = "linear_attn.out_proj";
  m.stepBias = "linear_attn.dt_bias";
  m.decay = "linear_attn.A_log";
  if (flag("joined")) {
    m.in = "linear_attn.in_proj_qkvz";
    m.decayIn = "linear_attn.in_proj_ba";
  } else {
    m.in = "linear_attn.in_proj_qkv";
    m.gateIn = "linear_attn.in_proj_z";
    m.decayIn = "linear_attn.in_proj_a";
    m.betaIn = "linear_attn.in_proj_b";
  }
  m.keyHeads = size("linear_num_key_heads");
  m.keyDim = size("linear_key_head_dim");
  m.heads = size("linear_num_value_heads");
  m.valueDim = size("linear_value_head_dim");
  for (size_t i = 0; i < d.kinds.size(); ++i)
    d.kinds[i].delta = tree.blocks[i] == "linear";
  if (m.heads % m.keyHeads != 0)
    json.error(firstOf({"linear_num_value_heads", "linear_num_key_heads"}),
               "the " + std::to_string(m.heads) +
                   " heads of values are not a multiple of the " +
                   std::to_string(m.keyHeads) + " of keys");
  // The convolution's is ACT2FN's too, but the gate's is always silu.
  if (d.mlp.activation != Activation::Silu)
    json.unsupported("hidden_act", "layers of a gated delta rule with another "
                                   "activation than silu are not supported "
                                   "yet");
}

void ExpertFamilyReader::qwen35() {
  d.useLlamaNames();
  d.norm = Decoder::Norm::RmsShifted;
  d.attention.queryNorm = "self_attn.q_norm";
  d.attention.keyNorm = "self_attn.k_norm";
  d.attention.gated = true;
  d.dropout.attention = dropout("attention_dropout");
  d.positionsOfMask = tree.modelType != "qwen3_next";
  rope({.defaultPartial = 0.25, .partialAllowed = true, .sections = true});
  delta();
  deltaExperts();
}

void ExpertFamilyReader::deltaExperts() {
  Mixture &m = d.mixture;
  m.experts = size("experts");
  std::vector<bool> sparse(d.kinds.size(), m.experts > 0);
  // Of Qwen3.5 all layers have experts, and weights always sum to 1.
  const bool next = tree.modelType == "qwen3_next";
  if (next)
    readSparseLayers(json, sparse);
  for (size_t i = 0; i < d.kinds.size(); ++i)
    d.kinds[i].sparse = sparse[i];
  const bool any = hasExperts();
  if (tree.modelType != "qwen3_5_text")
    router(any);
  if (!any)
    return;
  m.intermediateSize = size("expert_size");
  m.activation = d.mlp.activation;
  m.normalize = next ? json.flag("norm_topk_prob", true) : true;
  shareExpert();
}
