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
#include "frontends/HuggingFace/EncoderConfig.h"
#include "frontends/HuggingFace/GptFamilies.h"
#include "frontends/ModuleTree/Description.h"

#include <algorithm>
#include <cmath>

using namespace accel;
using namespace accel::huggingface;

namespace {

struct FamilyReader : GptFamilyReader {
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

  void ministral() {
    d.useLlamaNames();
    d.dropout.attention = dropout("attention_dropout");
    ownHeadDim();
    rope();
    slidingWindows();
  }

  /// Mistral with YaRN, and scores that grow with the position.
  void ministral3() {
    d.useLlamaNames();
    d.dropout.attention = dropout("attention_dropout");
    RopeNames names{.defaultTheta = 1e4};
    const std::string section = ropeSection(json);
    DecoderAttention::ByPosition scale{0.1, 16384};
    if (section.empty()) {
      names.defaultTheta = 1e6;
      names.absent.kind = Rope::Kind::Yarn;
      names.absent.factor = 16;
      names.absent.originalMaxPositions = scale.positions;
    } else if (!json.failed()) {
      const std::string beta = section + ".llama_4_scaling_beta",
                        original =
                            section + ".original_max_position_embeddings";
      for (const std::string &key : {beta, original})
        if (!json.has(key) || json.isNull(key))
          return json.error(key, "'" + key +
                                     "' is missing, by which queries "
                                     "are scaled");
      scale.beta = json.number(beta, 0);
      scale.positions = json.size(original, 1, sizeLimits::positions);
    }
    d.attention.byPosition = scale;
    rope(names);
    // All layers, whatever layer_types says.
    if (json.find("layer_types"))
      json.warning("layer_types", "ignored-key",
                   "'layer_types' has no effect: all layers of ministral3 have "
                   "the same window");
    for (DecoderLayerKind &kind : d.kinds)
      kind.window = size("sliding_window");
  }

  void hunyuanDense() {
    d.useLlamaNames();
    d.attention.queryNorm = "self_attn.query_layernorm";
    d.attention.keyNorm = "self_attn.key_layernorm";
    d.attention.normTurned = true;
    d.dropout.attention = dropout("attention_dropout");
    ownHeadDim();
    rope();
    // Frequencies that "dynamic" with a fixed alpha stretches once.
    Rope &stretched = d.ropes.front();
    if (json.failed() || stretched.kind != Rope::Kind::Dynamic)
      return;
    const std::string key = ropeSection(json) + ".alpha";
    const double alpha = json.number(key, 0, /*nullable=*/true);
    if (alpha < 0)
      json.error(key, "'alpha' must not be negative");
    if (alpha <= 0)
      return;
    const auto width = static_cast<double>(d.headDim);
    stretched.kind = Rope::Kind::Default;
    stretched.theta *= std::pow(alpha, width / (width - 2));
    stretched.factor = 1;
    stretched.maxPositions = 0;
  }

  /// Classes that read head_dim and have no default for it.
  void ownHeadDim() {
    if (!json.has("head_dim"))
      json.error("head_dim", "'head_dim' is missing, which transformers' class "
                             "has no default for");
  }

  /// Turned by tables in fp32, neighbour by neighbour.
  void ernie45() {
    d.useLlamaNames();
    d.turnsNeighbours = d.turnsCopies = d.wideRotary = true;
    rope({.defaultTheta = 5e5});
  }

  void granite() {
    graniteLayers();
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
    {{"ernie4_5", "hidden_act", "rms_norm_eps", 1e-5, 0, true, false},
     &FamilyReader::ernie45},
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
    {{"granitemoe", "hidden_act", "rms_norm_eps", 1e-6, {}, true, true},
     &FamilyReader::graniteMoe},
    {{"granitemoehybrid",
      "hidden_act",
      "rms_norm_eps",
      1e-6,
      {},
      true,
      true,
      true},
     &FamilyReader::graniteMoeHybrid},
    {{"hunyuan_v1_dense", "hidden_act", "rms_norm_eps", 1e-5, 0, true, false},
     &FamilyReader::hunyuanDense},
    {{"ministral", "hidden_act", "rms_norm_eps", 1e-6, {}, true, false},
     &FamilyReader::ministral},
    {{"ministral3", "hidden_act", "rms_norm_eps", 1e-5, 11, true, false},
     &FamilyReader::ministral3},
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
    {{"qwen3_5_text",
      "hidden_act",
      "rms_norm_eps",
      1e-6,
      {},
      true,
      false,
      true},
     &FamilyReader::qwen35},
    {{"qwen3_5_moe_text",
      "hidden_act",
      "rms_norm_eps",
      1e-6,
      {},
      true,
      false,
      true},
     &FamilyReader::qwen35},
    {{"qwen3_next", "hidden_act", "rms_norm_eps", 1e-6, {}, true, false, true},
     &FamilyReader::qwen35},
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
  if (description.describes && !description.describes(json)) {
    json.unsupported(json.find("layer_types") ? "layer_types" : "",
                     "layers of Mamba-2 with an MLP behind them are not "
                     "supported yet; supported is " +
                         modelType +
                         " where 'layer_types' is full_attention for each "
                         "layer",
                     "export the model: tools/export-model NAME -o model.pt2, "
                     "and pass --model model.pt2");
    return std::nullopt;
  }
  auto tree = moduletree::instantiate(description, "", json, diagnostics, path);
  if (!tree || json.failed())
    return std::nullopt;
  reader.tree = std::move(*tree);
  reader.tree.modelType = modelType;
  reader.shared();
  if (json.failed())
    return std::nullopt;
  (reader.*entry.read)();
  if (entry.family.hybrid || modelType == "falcon" ||
      modelType == "deepseek_v3" || modelType == "gpt_oss" ||
      modelType == "qwen2_moe" || modelType == "olmoe" ||
      modelType.starts_with("glm4_moe") || modelType.starts_with("granitemoe"))
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
