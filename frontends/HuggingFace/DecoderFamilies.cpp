//===- DecoderFamilies.cpp - Families of decoders from config.json --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Sizes and names come from the module trees (frontends/ModuleTree); here is
// what the modules compute, from modeling_*.py of transformers 5.23.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Eager.h"
#include "frontends/HuggingFace/EncoderConfig.h"
#include "frontends/HuggingFace/ExpertFamilies.h"
#include "frontends/ModuleTree/Description.h"

#include <algorithm>
#include <cmath>

using namespace accel;
using namespace accel::huggingface;

namespace {

struct FamilyReader : ExpertFamilyReader {
  void olmo2() {
    d.useLlamaNames();
    d.norm = Decoder::Norm::RmsWide;
    d.wideRotary = true;
    d.attention.queryNorm = "self_attn.q_norm";
    d.attention.keyNorm = "self_attn.k_norm";
    d.attention.normHeads = false;
    d.beforeAttention = d.beforeMlp = "";
    d.ofAttention = "post_attention_layernorm";
    d.ofMlp = "post_feedforward_layernorm";
    d.dropout.attention = dropout("attention_dropout");
    if (tree.modelType == "olmo2")
      rope();
  }

  /// OLMo 2 with windows, and a rope for each type of layer.
  void olmo3() {
    olmo2();
    slidingWindows();
    ropesByType("", 5e5);
  }

  void granite() {
    d.useLlamaNames();
    d.embeddingFactor = json.number("embedding_multiplier", 1);
    d.residualFactor = json.number("residual_multiplier", 1);
    d.attention.scale = json.number("attention_multiplier", 1);
    d.logitDivisor = json.number("logits_scaling", 1);
    if (d.logitDivisor == 0)
      json.error("logits_scaling", "'logits_scaling' must not be 0");
    d.dropout.attention = dropout("attention_dropout");
    rope();
  }

  void starcoder2() {
    d.useLlamaNames();
    layerNorms("input_layernorm", "post_attention_layernorm");
    plainMlp("mlp", "mlp.c_fc", "mlp.c_proj", "mlp.act");
    d.dropout.embedding = dropout("embedding_dropout");
    d.dropout.attention = dropout("attention_dropout");
    d.dropout.attentionOutput = d.dropout.mlpOutput =
        dropout("residual_dropout");
    rope();
    windows(size("sliding_window"));
  }

  void arcee() {
    d.useLlamaNames();
    plainMlp("mlp", "mlp.up_proj", "mlp.down_proj", "mlp.act_fn");
    d.dropout.attention = dropout("attention_dropout");
    rope();
  }

  void seedOss() {
    d.useLlamaNames();
    d.dropout.attention = dropout("attention_dropout", 0.1);
    d.dropout.attentionOutput = d.dropout.mlpOutput =
        dropout("residual_dropout", 0.1);
    rope();
  }

  void smollm3() {
    d.useLlamaNames();
    d.dropout.attention = dropout("attention_dropout");
    rope({.defaultTheta = 2e6});
    windows(size("sliding_window"));
    layersThatTurn();
  }

  void phi() {
    d.useLlamaNames();
    layerNorms("input_layernorm", "input_layernorm");
    d.finalNorm = "model.final_layernorm";
    d.attention.output = "self_attn.dense";
    if (flag("qk_layernorm")) {
      d.attention.queryNorm = "self_attn.q_layernorm";
      d.attention.keyNorm = "self_attn.k_layernorm";
    }
    plainMlp("mlp", "mlp.fc1", "mlp.fc2", "mlp.activation_fn");
    d.parallel = true;
    d.dropout.embedding = dropout("embd_pdrop");
    d.dropout.attention = dropout("attention_dropout");
    d.dropout.attentionOutput = d.dropout.mlpOutput = dropout("resid_pdrop");
    rope({.defaultPartial = 0.5, .partialAllowed = true});
  }

  void stableLm() {
    d.useLlamaNames();
    d.parallel = d.oneByOne = json.flag("use_parallel_residual", false);
    layerNorms("input_layernorm",
               d.parallel ? "input_layernorm" : "post_attention_layernorm");
    if (json.flag("qk_layernorm", false))
      json.unsupported("qk_layernorm",
                       "a norm of its own for each head ('qk_layernorm') is "
                       "not supported yet");
    d.dropout.attention = dropout("attention_dropout");
    d.dropout.mlpOutput = dropout("hidden_dropout");
    rope({.defaultPartial = 0.25, .partialAllowed = true});
  }

  void exaone4() {
    d.useLlamaNames();
    d.attention.queryNorm = "self_attn.q_norm";
    d.attention.keyNorm = "self_attn.k_norm";
    d.beforeAttention = d.beforeMlp = "";
    d.ofAttention = "post_attention_layernorm";
    d.ofMlp = "post_feedforward_layernorm";
    d.dropout.attention = dropout("attention_dropout");
    rope();
    if (json.find("sliding_window_pattern") && !json.find("layer_types"))
      json.size("sliding_window_pattern", 4, sizeLimits::layers);
    slidingWindows();
    // Beside windows, layers that see all keys have no positions.
    if (size("sliding_window"))
      for (DecoderLayerKind &kind : d.kinds)
        kind.turns = kind.window > 0;
  }

  void cohere() {
    d.useLlamaNames();
    d.norm = Decoder::Norm::LayerByParts;
    d.parallel = d.oneByOne = true;
    d.beforeMlp = d.beforeAttention;
    d.turnsNeighbours = d.neighboursOfTables = d.turnsCopies = true;
    if (flag("use_qk_norm")) {
      d.attention.queryNorm = "self_attn.q_norm";
      d.attention.keyNorm = "self_attn.k_norm";
    }
    d.dropout.attention = dropout("attention_dropout");
    d.logitFactor = json.number("logit_scale", 0.0625);
    rope({.defaultTheta = tree.modelType == "cohere" ? 5e5 : 1e4});
  }

  /// Cohere with windows, and no positions where a layer sees all keys.
  void cohere2() {
    cohere();
    slidingWindows();
    for (DecoderLayerKind &kind : d.kinds)
      kind.turns = kind.window > 0;
  }

  void glm4() {
    glm();
    d.ofAttention = "post_self_attn_layernorm";
    d.ofMlp = "post_mlp_layernorm";
  }

  void glm() {
    d.useLlamaNames();
    d.turnsNeighbours = true;
    d.mlp.layout = DecoderMlp::Layout::FusedGated;
    d.mlp.up = "mlp.gate_up_proj";
    d.mlp.activationPath = "mlp.activation_fn";
    d.dropout.attention = dropout("attention_dropout");
    rope({.defaultPartial = 0.5, .partialAllowed = true});
  }

  void phi3() {
    d.useLlamaNames();
    d.attention.layout = DecoderAttention::Layout::Rows;
    d.attention.joint = "self_attn.qkv_proj";
    d.mlp.layout = DecoderMlp::Layout::FusedGated;
    d.mlp.up = "mlp.gate_up_proj";
    d.mlp.activationPath = "mlp.activation_fn";
    d.dropout.attention = dropout("attention_dropout");
    d.dropout.attentionOutput = d.dropout.mlpOutput = dropout("resid_pdrop");
    rope({.partialAllowed = true, .longRopeOnly = true});
    windows(size("sliding_window"));
  }

  void gemma() {
    d.useLlamaNames();
    d.norm = Decoder::Norm::RmsShifted;
    d.embeddingScale = std::sqrt(double(d.hiddenSize));
    if (tree.modelType == "gemma" && d.mlp.activation == Activation::Gelu) {
      // As GemmaConfig reads it.
      d.mlp.activation = Activation::GeluTanh;
      for (TreeModule &module : tree.modules)
        if (module.className == moduleClass(Activation::Gelu))
          module.className = moduleClass(Activation::GeluTanh);
    }
    d.dropout.attention = dropout("attention_dropout");
    if (tree.modelType != "gemma3_text")
      rope();
    if (tree.modelType != "gemma")
      gemma2();
    if (tree.modelType == "gemma3_text")
      gemma3();
  }

  void gemma2() {
    d.ofAttention = "post_attention_layernorm";
    d.beforeMlp = "pre_feedforward_layernorm";
    d.ofMlp = "post_feedforward_layernorm";
    d.attention.scale =
        std::pow(json.number("query_pre_attn_scalar", 256), -0.5);
    if (!std::isfinite(d.attention.scale))
      json.error("query_pre_attn_scalar",
                 "'query_pre_attn_scalar' must be positive");
    bool second = tree.modelType == "gemma2";
    d.attention.byParts = second;
    if (second)
      d.attention.softcap = cap("attn_logit_softcapping", 50);
    d.logitSoftcap = cap("final_logit_softcapping", second ? 30 : 0);
    windows(json.isNull("sliding_window")
                ? 0
                : json.size("sliding_window", 4096, sizeLimits::positions));
  }

  void gemma3() {
    d.attention.queryNorm = "self_attn.q_norm";
    d.attention.keyNorm = "self_attn.k_norm";
    ropesByType("rope_local_base_freq", 1e6);
  }

  /// A rope of layers with a window and one of those that see all keys, which
  /// alone rope_scaling and rope_theta change; `localTheta` is the theta of the
  /// others outside of rope_parameters, or "".
  void ropesByType(const char *localTheta, double globalTheta) {
    RopeNames local, global;
    std::string parameters = "rope_parameters.";
    local.theta = localTheta;
    if (local.theta.empty()) {
      local.theta = parameters + "sliding_attention.rope_theta";
      local.defaultTheta = globalTheta;
    }
    global.defaultTheta = globalTheta;
    auto section = [&](const char *type) {
      return json.find(parameters + type) ? parameters + type : std::string();
    };
    std::string full =
        json.find("rope_scaling") ? "rope_scaling" : section("full_attention");
    addRope(readRopeSection(json, section("sliding_attention"),
                            tree.sizes.maxPositions, local));
    addRope(readRopeSection(json, full, tree.sizes.maxPositions, global));
    for (size_t i = 0; i < d.kinds.size() && i < tree.attention.size(); ++i)
      d.kinds[i].rope = tree.attention[i] == Attention::Full;
  }

  void jointAttention(DecoderAttention::Layout layout, const char *path,
                      const char *joint, const char *output) {
    d.attention.layout = layout;
    d.attention.path = path;
    d.attention.joint = joint;
    d.attention.output = output;
  }

  void gptBigcode() {
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
    d.dropout.attentionOutput = d.dropout.mlpOutput =
        dropout("resid_pdrop", 0.1);
  }

  void gptNeox() {
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

  void opt() {
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

  void falcon() {
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

  void mpt() {
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
};

struct Entry {
  DecoderFamily family;
  void (FamilyReader::*read)();
};

// model_type, activation, epsilon, its default, pad_token_id, whether it is
// read, whether the hidden size is a multiple of the heads, whether layers are
// of several kinds.
const Entry families[] = {
    {{"arcee", "hidden_act", "rms_norm_eps", 1e-5, {}, true, true},
     &FamilyReader::arcee},
    {{"cohere", "hidden_act", "layer_norm_eps", 1e-5, 0, true, false},
     &FamilyReader::cohere},
    {{"cohere2", "hidden_act", "layer_norm_eps", 1e-5, 0, true, false},
     &FamilyReader::cohere2},
    {{"deepseek_v3", "hidden_act", "rms_norm_eps", 1e-6, {}, true, false},
     &FamilyReader::deepseekV3},
    {{"exaone4", "hidden_act", "rms_norm_eps", 1e-5, {}, true, false},
     &FamilyReader::exaone4},
    {{"falcon", "activation", "layer_norm_epsilon", 1e-5, {}, false, true},
     &FamilyReader::falcon},
    {{"gemma", "hidden_act", "rms_norm_eps", 1e-6, 0, true, false},
     &FamilyReader::gemma},
    {{"gemma2", "hidden_act", "rms_norm_eps", 1e-6, 0, true, true},
     &FamilyReader::gemma},
    {{"gemma3_text", "hidden_act", "rms_norm_eps", 1e-6, 0, true, true},
     &FamilyReader::gemma},
    {{"glm", "hidden_act", "rms_norm_eps", 1.5625e-7, 151329, true, false},
     &FamilyReader::glm},
    {{"glm4", "hidden_act", "rms_norm_eps", 1.5625e-7, 151329, true, false},
     &FamilyReader::glm4},
    {{"glm4_moe", "hidden_act", "rms_norm_eps", 1e-5, {}, true, false},
     &FamilyReader::glm4Moe},
    {{"glm4_moe_lite", "hidden_act", "rms_norm_eps", 1e-5, {}, true, false},
     &FamilyReader::deepseekV3},
    {{"gpt_bigcode",
      "activation_function",
      "layer_norm_epsilon",
      1e-5,
      {},
      false,
      true},
     &FamilyReader::gptBigcode},
    {{"gpt_neox", "hidden_act", "layer_norm_eps", 1e-5, {}, false, true},
     &FamilyReader::gptNeox},
    {{"gpt_oss", "", "rms_norm_eps", 1e-5, {}, true, false},
     &FamilyReader::gptOss},
    {{"granite", "hidden_act", "rms_norm_eps", 1e-6, {}, true, false},
     &FamilyReader::granite},
    {{"mpt", "", "layer_norm_epsilon", 1e-5, {}, false, true},
     &FamilyReader::mpt},
    {{"nemotron_h",
      "mlp_hidden_act",
      "layer_norm_epsilon",
      1e-5,
      {},
      false,
      false,
      true},
     &FamilyReader::nemotronH},
    {{"olmo2", "hidden_act", "rms_norm_eps", 1e-5, 1, true, false},
     &FamilyReader::olmo2},
    {{"olmo3", "hidden_act", "rms_norm_eps", 1e-5, 1, true, false},
     &FamilyReader::olmo3},
    {{"olmoe", "hidden_act", "rms_norm_eps", 1e-5, 1, true, false},
     &FamilyReader::olmoe},
    {{"opt", "activation_function", "", 1e-5, 1, true, true},
     &FamilyReader::opt},
    {{"phi", "hidden_act", "layer_norm_eps", 1e-5, {}, true, false},
     &FamilyReader::phi},
    {{"phi3", "hidden_act", "rms_norm_eps", 1e-5, 32000, true, false},
     &FamilyReader::phi3},
    {{"qwen2_moe", "hidden_act", "rms_norm_eps", 1e-6, {}, true, false},
     &FamilyReader::qwen2Moe},
    {{"seed_oss", "hidden_act", "rms_norm_eps", 1e-6, 1, true, false},
     &FamilyReader::seedOss},
    {{"smollm3", "hidden_act", "rms_norm_eps", 1e-6, 128004, true, false},
     &FamilyReader::smollm3},
    {{"stablelm", "hidden_act", "layer_norm_eps", 1e-5, {}, true, true},
     &FamilyReader::stableLm},
    {{"starcoder2", "hidden_act", "norm_epsilon", 1e-5, {}, true, false},
     &FamilyReader::starcoder2},
};

const Entry *find(const std::string &modelType) {
  for (const Entry &entry : families)
    if (modelType == entry.family.modelType)
      return &entry;
  return nullptr;
}

} // namespace

bool accel::huggingface::isDecoderFamily(const std::string &modelType) {
  return find(modelType) != nullptr;
}

std::vector<std::string> accel::huggingface::decoderFamilyNames() {
  std::vector<std::string> names;
  for (const Entry &entry : families)
    names.push_back(entry.family.modelType);
  return names;
}

std::optional<DecoderConfig>
accel::huggingface::readDecoder(const std::string &modelType,
                                ConfigReader &json, const std::string &path,
                                DiagnosticEngine &diagnostics) {
  const Entry &entry = *find(modelType);
  const moduletree::Family &description = *moduletree::findFamily(modelType);
  FamilyReader reader{{json, entry.family}};
  if (!reader.checkArchitecture(description.prefix))
    return std::nullopt;
  reader.checkSizes();
  if (json.failed())
    return std::nullopt;
  auto tree = moduletree::instantiate(description, "", json, diagnostics, path);
  if (!tree || json.failed())
    return std::nullopt;
  reader.tree = std::move(*tree);
  reader.tree.modelType = modelType;
  reader.shared();
  if (json.failed())
    return std::nullopt;
  (reader.*entry.read)();
  if (modelType == "falcon" || modelType == "deepseek_v3" ||
      modelType.starts_with("glm4_moe") || modelType == "nemotron_h" ||
      modelType == "gpt_oss" || modelType == "qwen2_moe" ||
      modelType == "olmoe")
    refuseZeroDeviation(json);
  std::optional<plan::DType> dtype = json.dtype();
  if (json.failed())
    return std::nullopt;

  double stddev = json.number("initializer_range",
                              modelType == "starcoder2" ? 0.018042 : 0.02);
  if (modelType == "opt")
    stddev = json.number("init_std", 0.02);
  else if (stddev == 0 && modelType != "gpt_bigcode")
    stddev = 0.02; // as transformers reads a 0
  DecoderConfig config;
  config.vocabSize = reader.tree.sizes.vocabulary;
  config.maxPositions = reader.tree.sizes.maxPositions;
  config.dtype = dtype;
  config.info = reader.info(stddev);
  config.decoder = std::move(reader.d);
  double elements = 0;
  for (const ParameterInfo &parameter : config.info.parameters) {
    double product = 1;
    for (int64_t size : parameter.shape)
      product *= double(size);
    elements += product;
  }
  if (elements > sizeLimits::parameters) {
    json.error("", "these sizes make a model of more than 1e15 parameters");
    return std::nullopt;
  }
  return config;
}
