//===- ExpertFamilies.cpp - Decoders with experts from config.json --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/ExpertFamilies.h"

#include "frontends/HuggingFace/EncoderConfig.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace accel;
using namespace accel::huggingface;

void ExpertFamilyReader::deepseekV3() {
  latentAttention();
  groupedMixture();
}

void ExpertFamilyReader::glm4Moe() {
  d.useLlamaNames();
  if (flag("use_qk_norm")) {
    d.attention.queryNorm = "self_attn.q_norm";
    d.attention.keyNorm = "self_attn.k_norm";
  }
  d.dropout.attention = dropout("attention_dropout");
  rope({.defaultPartial = 0.5, .partialAllowed = true});
  groupedMixture();
}

void ExpertFamilyReader::latentAttention() {
  d.useLlamaNames();
  DecoderAttention &a = d.attention;
  LatentAttention &l = a.latent;
  a.layout = DecoderAttention::Layout::Latent;
  l.rank = size("kv_lora_rank");
  l.plain = size("qk_nope_head_dim");
  l.turned = size("qk_rope_head_dim");
  l.value = size("v_head_dim");
  l.keyValueDown = "self_attn.kv_a_proj_with_mqa";
  l.keyValueNorm = "self_attn.kv_a_layernorm";
  l.keyValueUp = "self_attn.kv_b_proj";
  if (size("q_lora_rank")) {
    l.queryDown = "self_attn.q_a_proj";
    l.queryNorm = "self_attn.q_a_layernorm";
    a.query = "self_attn.q_b_proj";
  }
  l.pairs = json.flag("rope_interleave", true);
  d.headDim = l.turned;
  if (json.has("head_dim") && json.integer("head_dim") != l.turned)
    json.error("head_dim", "'head_dim' is what rotary embeddings turn, "
                           "'qk_rope_head_dim' " +
                               std::to_string(l.turned));
  if (d.keyValueHeads != d.heads)
    json.unsupported("num_key_value_heads",
                     "latent attention has a key for each of its " +
                         std::to_string(d.heads) +
                         " heads; 'num_key_value_heads' must be the same");
  rope();
  a.scale = std::pow(double(l.plain + l.turned), -0.5) * scoreFactor();
  d.dropout.attention = dropout("attention_dropout");
}

double ExpertFamilyReader::scoreFactor() {
  if (json.failed() || d.ropes.front().kind == Rope::Kind::Default)
    return 1;
  const double weight =
      json.number(ropeSection(json) + ".mscale_all_dim", 0, true);
  const double factor = d.ropes.front().factor;
  return weight == 0 || factor <= 1
             ? 1
             : std::pow(0.1 * weight * std::log(factor) + 1, 2);
}

void ExpertFamilyReader::groupedMixture() {
  Mixture &m = d.mixture;
  std::set<std::string> modules;
  for (const TreeModule &module : tree.modules)
    modules.insert(module.fqn);
  for (size_t i = 0; i < d.kinds.size(); ++i)
    d.kinds[i].sparse =
        modules.count(d.layers + "." + std::to_string(i) + ".mlp.experts") != 0;
  if (!hasExperts())
    return;
  m.experts = size("experts");
  m.intermediateSize = size("expert_size");
  m.sharedSize = size("shared_size");
  m.activation = d.mlp.activation;
  sigmoidRouter();
  d.sharedMlp = d.mlp;
  for (std::string *name :
       {&d.sharedMlp.path, &d.sharedMlp.gate, &d.sharedMlp.up,
        &d.sharedMlp.down, &d.sharedMlp.activationPath})
    name->insert(std::string("mlp").size(), ".shared_experts");
  checkGroups();
}

bool ExpertFamilyReader::hasExperts() {
  Mixture &m = d.mixture;
  for (const DecoderLayerKind &kind : d.kinds)
    m.sparse.push_back(kind.sparse);
  return std::count(m.sparse.begin(), m.sparse.end(), true) > 0;
}

void ExpertFamilyReader::sigmoidRouter() {
  Mixture &m = d.mixture;
  m.sigmoid = m.scoresInFp32 = true;
  m.chosen = size("num_experts_per_tok");
  m.groups = size("n_group");
  m.groupsChosen = size("topk_group");
  m.normalize = flag("norm_topk_prob");
  m.scale = number("routed_scaling_factor");
}

void ExpertFamilyReader::nemotronH() {
  d.norm = Decoder::Norm::RmsWide;
  d.embedding = "model.embeddings";
  d.finalNorm = "model.norm_f";
  d.beforeBlock = "norm";
  storedBase = "backbone.";
  d.attention.path = "mixer";
  d.attention.query = "mixer.q_proj";
  d.attention.key = "mixer.k_proj";
  d.attention.value = "mixer.v_proj";
  d.attention.output = "mixer.o_proj";
  d.dropout.attention = dropout("attention_dropout");
  plainMlp("mixer", "mixer.up_proj", "mixer.down_proj", "mixer.act_fn");
  blocks();
  mamba();
  for (const char *key : {"attention_bias", "tie_word_embeddings",
                          "residual_in_fp32", "hidden_dropout"})
    if (const auto *value = json.find(key);
        value && *value != false && *value != 0)
      json.warning(key, "ignored-key",
                   std::string("'") + key +
                       "' has no effect: transformers does not read it");
  if (!hasExperts())
    return;
  Mixture &m = d.mixture;
  m.path = "mixer";
  m.plain = true;
  m.experts = size("n_routed_experts");
  m.intermediateSize = size("moe_intermediate_size");
  m.latentSize = size("moe_latent_size");
  m.sharedSize = size("moe_shared_expert_intermediate_size");
  sigmoidRouter();
  d.sharedMlp = d.mlp;
  for (std::string *name : {&d.sharedMlp.path, &d.sharedMlp.up,
                            &d.sharedMlp.down, &d.sharedMlp.activationPath})
    name->insert(std::string("mixer").size(), ".shared_experts");
  if (d.mlp.activation != Activation::Relu2)
    json.unsupported("mlp_hidden_act", "experts with another activation than "
                                       "relu2 are not supported yet");
  checkGroups();
  if (m.latentSize)
    checkExpertSizes(json, "moe_latent_size", m.latentSize);
}

void ExpertFamilyReader::checkGroups() {
  const Mixture &m = d.mixture;
  auto refuse = [&](const char *key, const std::string &what) {
    if (!json.failed())
      json.error(key, what);
  };
  if (m.experts % m.groups != 0)
    return refuse("n_group", "the " + std::to_string(m.experts) +
                                 " experts are not a multiple of 'n_group' " +
                                 std::to_string(m.groups));
  const int64_t each = m.experts / m.groups;
  if (m.groupsChosen > m.groups)
    refuse("topk_group", "'topk_group' " + std::to_string(m.groupsChosen) +
                             " is more than the " + std::to_string(m.groups) +
                             " groups");
  else if (each < 2)
    refuse("n_group", "a group has two experts at least, for its two best "
                      "scores; 'n_group' leaves " +
                          std::to_string(each));
  else if (m.chosen > each * m.groupsChosen)
    refuse("num_experts_per_tok",
           "'num_experts_per_tok' " + std::to_string(m.chosen) +
               " is more than the " + std::to_string(each * m.groupsChosen) +
               " experts of 'topk_group' groups");
  checkExpertSizes(json, "hidden_size", d.hiddenSize);
  checkExpertSizes(json, "moe_intermediate_size", m.intermediateSize);
}

void ExpertFamilyReader::router(bool sparse) {
  Mixture &m = d.mixture;
  m.chosen = size("num_experts_per_tok");
  if (!sparse || json.failed())
    return;
  if (m.chosen < 1 || m.chosen > m.experts)
    json.error("num_experts_per_tok",
               "'num_experts_per_tok' " + std::to_string(m.chosen) +
                   " is not between 1 and the " + std::to_string(m.experts) +
                   " experts");
  readBalancing(json, m);
}

void ExpertFamilyReader::qwen2Moe() {
  d.useLlamaNames();
  d.dropout.attention = dropout("attention_dropout");
  rope();
  slidingWindows();
  Mixture &m = d.mixture;
  m.experts = size("experts");
  std::vector<bool> sparse(d.kinds.size(), m.experts > 0);
  readSparseLayers(json, sparse);
  for (size_t i = 0; i < d.kinds.size(); ++i)
    d.kinds[i].sparse = sparse[i];
  const bool any = hasExperts();
  router(any);
  if (!any)
    return;
  m.intermediateSize = size("expert_size");
  m.activation = d.mlp.activation;
  m.normalize = json.flag("norm_topk_prob", false);
  shareExpert();
}

void ExpertFamilyReader::shareExpert() {
  Mixture &m = d.mixture;
  m.sharedSize = size("shared_size");
  d.sharedMlp = d.mlp;
  for (std::string *name :
       {&d.sharedMlp.path, &d.sharedMlp.gate, &d.sharedMlp.up,
        &d.sharedMlp.down, &d.sharedMlp.activationPath})
    name->insert(std::string("mlp").size(), ".shared_expert");
  m.sharedGate = "mlp.shared_expert_gate";
  checkExpertSizes(json, "hidden_size", d.hiddenSize);
  checkExpertSizes(json, "moe_intermediate_size", m.intermediateSize);
}

void ExpertFamilyReader::graniteLayers() {
  d.useLlamaNames();
  d.embeddingFactor = json.number("embedding_multiplier", 1);
  d.residualFactor = json.number("residual_multiplier", 1);
  d.attention.scale = json.number("attention_multiplier", 1);
  d.logitDivisor = json.number("logits_scaling", 1);
  if (d.logitDivisor == 0)
    json.error("logits_scaling", "'logits_scaling' must not be 0");
  d.dropout.attention = dropout("attention_dropout");
}

void ExpertFamilyReader::graniteMixture() {
  Mixture &m = d.mixture;
  m.path = "block_sparse_moe";
  m.router = "router";
  m.softmaxOfChosen = true;
  m.experts = size("experts");
  m.intermediateSize = size("intermediate_size");
  m.activation = d.mlp.activation;
  for (DecoderLayerKind &kind : d.kinds)
    kind.sparse = m.experts > 0;
  router(hasExperts());
  if (!m.experts)
    return;
  checkExpertSizes(json, "hidden_size", d.hiddenSize);
  checkExpertSizes(json, "intermediate_size", m.intermediateSize);
}

void ExpertFamilyReader::graniteMoe() {
  graniteLayers();
  rope();
  if (size("experts") < 1)
    json.error("num_local_experts", "'num_local_experts' must be 1 or more");
  graniteMixture();
}

/// Granite 4 where all layers have attention: its own MLP beside experts, or
/// alone.
void ExpertFamilyReader::graniteMoeHybrid() {
  graniteLayers();
  if (const nlohmann::json *types = json.find("layer_types");
      types && types->size() != d.kinds.size())
    return json.error("layer_types",
                      "'layer_types' must be a list of a word for each of "
                      "the " +
                          std::to_string(d.kinds.size()) + " layers");
  if (number("rotates") != 0)
    rope();
  d.mlp.layout = DecoderMlp::Layout::FusedGated;
  d.mlp.path = "shared_mlp";
  d.mlp.up = "shared_mlp.input_linear";
  d.mlp.down = "shared_mlp.output_linear";
  d.mlp.activationPath = "shared_mlp.activation";
  d.sharedMlp = d.mlp;
  graniteMixture();
  if (d.mixture.experts)
    d.mixture.sharedSize = size("shared_intermediate_size");
}

void ExpertFamilyReader::olmoe() {
  d.useLlamaNames();
  d.attention.queryNorm = "self_attn.q_norm";
  d.attention.keyNorm = "self_attn.k_norm";
  d.attention.normHeads = false;
  d.dropout.attention = dropout("attention_dropout");
  if (json.find("clip_qkv"))
    json.unsupported("clip_qkv", "clipped projections ('clip_qkv') are not "
                                 "supported yet");
  rope();
  Mixture &m = d.mixture;
  m.experts = size("experts");
  m.intermediateSize = size("expert_size");
  m.activation = d.mlp.activation;
  m.normalize = json.flag("norm_topk_prob", false);
  for (DecoderLayerKind &kind : d.kinds)
    kind.sparse = true;
  router(hasExperts());
  checkExpertSizes(json, "hidden_size", d.hiddenSize);
  checkExpertSizes(json, "intermediate_size", m.intermediateSize);
}

void ExpertFamilyReader::gptOss() {
  d.useLlamaNames();
  d.norm = Decoder::Norm::RmsWide;
  d.halfTables = true;
  d.attention.sinks = "self_attn.sinks";
  d.dropout.attention = dropout("attention_dropout");
  RopeNames names{.defaultTheta = 150000};
  names.absent.kind = Rope::Kind::Yarn;
  names.absent.factor = 32;
  names.absent.truncate = false;
  names.absent.originalMaxPositions = 4096;
  names.absent.attentionFactor = 0.1 * std::log(32.0) + 1;
  rope(names);
  if (d.headDim < 4)
    json.unsupported("head_dim", "heads of fewer than 4 elements are not "
                                 "supported with attention sinks");
  slidingWindows();
  Mixture &m = d.mixture;
  m.router = "router";
  m.experts = size("experts");
  m.intermediateSize = size("intermediate_size");
  m.clamped = {json.number("swiglu_alpha", 1.702),
               json.number("swiglu_limit", 7.0)};
  for (DecoderLayerKind &kind : d.kinds)
    kind.sparse = true;
  router(hasExperts());
  checkExpertSizes(json, "hidden_size", d.hiddenSize);
  checkExpertSizes(json, "intermediate_size", m.intermediateSize);
}
