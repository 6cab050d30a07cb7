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
#include "frontends/HuggingFace/ConfigReader.h"
#include "frontends/HuggingFace/Decoder.h"
#include "frontends/ModuleTree/Description.h"

#include <algorithm>
#include <cmath>

using namespace accel;
using namespace accel::huggingface;

namespace {

struct FamilyReader;

struct DecoderFamily {
  const char *modelType;
  void (FamilyReader::*read)();
  const char *activation; // its name in the module tree's texts, or ""
  const char *eps;        // the norms' epsilon, and its default
  double defaultEps;
  std::optional<int64_t> pad; // default pad_token_id, where it matters
  bool readsPad;
};

/// One config.json. Members are set from what all families share before the
/// family's own function runs.
struct FamilyReader {
  ConfigReader &json;
  const DecoderFamily &family;
  ModuleTree tree;
  Decoder d = {};

  bool flag(const char *name) const { return number(name) != 0; }
  double number(const char *name) const {
    auto it = tree.numbers.find(name);
    return it == tree.numbers.end() ? 0 : it->second;
  }
  int64_t size(const char *name) const {
    return static_cast<int64_t>(number(name));
  }

  //===--------------------------------------------------------------------===//
  // What the families share
  //===--------------------------------------------------------------------===//

  /// Sizes that config.json gives are whole numbers above 0.
  void checkSizes() {
    struct {
      const char *key;
      int64_t limit;
      bool nullable = false;
    } sizes[] = {{"vocab_size", sizeLimits::vocab},
                 {"hidden_size", sizeLimits::size},
                 {"d_model", sizeLimits::size},
                 {"intermediate_size", sizeLimits::size},
                 {"ffn_dim", sizeLimits::size},
                 {"ffn_hidden_size", sizeLimits::size, true},
                 {"word_embed_proj_dim", sizeLimits::size, true},
                 {"num_hidden_layers", sizeLimits::layers},
                 {"n_layers", sizeLimits::layers},
                 {"num_attention_heads", sizeLimits::size},
                 {"n_heads", sizeLimits::size},
                 {"num_key_value_heads", sizeLimits::size, true},
                 {"num_kv_heads", sizeLimits::size, true},
                 {"head_dim", sizeLimits::size},
                 {"max_position_embeddings", sizeLimits::positions},
                 {"max_seq_len", sizeLimits::positions},
                 {"sliding_window", sizeLimits::positions, true}};
    for (const auto &entry : sizes)
      if (json.has(entry.key))
        json.size(entry.key, 1, entry.limit, entry.nullable);
    for (const char *key : {"initializer_range", "init_std"})
      if (double value = json.number(key, 0); value < 0 || value > 1)
        json.error(key, std::string("'") + key + "' must be between 0 and 1");
  }

  void shared() {
    d.classPrefix = tree.architecture.substr(
        0, tree.architecture.size() - std::string("ForCausalLM").size());
    d.layerClass = tree.noSplit.front();
    d.hiddenSize = size("hidden_size");
    d.heads = size("num_attention_heads");
    d.keyValueHeads = tree.numbers.count("num_key_value_heads")
                          ? size("num_key_value_heads")
                          : d.heads;
    d.headDim = tree.numbers.count("head_dim") ? size("head_dim")
                                               : d.hiddenSize / d.heads;
    d.kinds.resize(size_t(size("num_hidden_layers")));
    d.attention.scale = std::pow(double(d.headDim), -0.5);
    d.normEps = json.number(family.eps, family.defaultEps);
    if (d.normEps < 0)
      json.error(family.eps,
                 std::string("'") + family.eps + "' must not be negative");
    activation();
    padding();
    for (const char *key : {"quantization_config", "per_layer_config"})
      if (json.has(key) && !json.isNull(key))
        json.unsupported(key,
                         std::string("'") + key + "' is not supported yet");
    if (json.find("use_bidirectional_attention") &&
        json.flag("use_bidirectional_attention", false))
      json.unsupported("use_bidirectional_attention",
                       "bidirectional attention is not supported yet");
    // A dimension that heads share must divide.
    bool apart = family.read == &FamilyReader::olmo2 ||
                 family.read == &FamilyReader::phi3 ||
                 std::string(family.modelType) == "gemma";
    if (d.hiddenSize % d.heads && !apart)
      json.error("", "the hidden size " + std::to_string(d.hiddenSize) +
                         " is not a multiple of the " +
                         std::to_string(d.heads) + " heads");
    else if (d.keyValueHeads < 1 || d.heads % d.keyValueHeads)
      json.error("num_key_value_heads",
                 "the " + std::to_string(d.heads) +
                     " heads are not a multiple of the " +
                     std::to_string(d.keyValueHeads) + " key heads");
  }

  void activation() {
    auto it = tree.texts.find(family.activation);
    if (it == tree.texts.end())
      return;
    if (auto known = parseActivation(it->second)) {
      d.mlp.activation = *known;
      return;
    }
    json.unsupported(family.activation,
                     "activation '" + printable(it->second) +
                         "' is not supported yet; supported are " +
                         activationNames());
  }

  void padding() {
    if (!family.readsPad)
      return;
    std::optional<int64_t> pad = family.pad;
    if (json.has("pad_token_id"))
      pad = json.isNull("pad_token_id") ? std::nullopt
                                        : json.integer("pad_token_id");
    if (!pad)
      return;
    // A negative index counts from the end of the vocabulary.
    int64_t vocabulary = size("vocab_size");
    int64_t row = *pad < 0 ? *pad + vocabulary : *pad;
    if (row < 0 || row >= vocabulary)
      json.error("pad_token_id",
                 "'pad_token_id' " + std::to_string(*pad) +
                     (json.has("pad_token_id") ? "" : ", the default,") +
                     " is outside the vocabulary of " +
                     std::to_string(vocabulary) + " tokens");
    else
      d.paddingIndex = row;
  }

  double dropout(const char *key, double otherwise = 0) {
    return json.probability(key, otherwise, /*nullable=*/true);
  }

  void rope(const RopeNames &names = {}) {
    addRope(readRope(json, tree.sizes.maxPositions, names));
  }
  void addRope(const Rope &rope) {
    int64_t width = rope.width(d.headDim);
    if (width < 2 || width > d.headDim)
      json.error("", "rotary embeddings turn " + std::to_string(width) +
                         " of the " + std::to_string(d.headDim) +
                         " elements of a head");
    d.ropes.push_back(rope);
  }

  /// Layers that the module tree marks attend to `window` keys; the others, if
  /// there are two ropes, use the second.
  void windows(int64_t window) {
    for (size_t i = 0; i < d.kinds.size() && i < tree.attention.size(); ++i)
      if (tree.attention[i] == Attention::Sliding)
        d.kinds[i].window = window;
  }

  //===--------------------------------------------------------------------===//
  // Families
  //===--------------------------------------------------------------------===//

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
    rope();
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
    RopeNames names;
    names.partialAllowed = true;
    rope(names);
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

  /// A cap of tanh; 0 where there is none.
  double cap(const char *key, double otherwise) {
    if (json.isNull(key))
      return 0;
    double value = json.number(key, otherwise);
    if (json.has(key) && value <= 0)
      json.error(key, std::string("'") + key + "' must be positive or null");
    return value;
  }

  void gemma3() {
    d.attention.queryNorm = "self_attn.q_norm";
    d.attention.keyNorm = "self_attn.k_norm";
    // rope_scaling changes the layers that see all keys alone.
    RopeNames local, global;
    local.theta = "rope_local_base_freq";
    global.defaultTheta = 1e6;
    std::string parameters = "rope_parameters.";
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

  void layerNorms(const char *attention, const char *mlp) {
    d.norm = Decoder::Norm::Layer;
    d.beforeAttention = attention;
    d.beforeMlp = mlp;
  }
  void plainMlp(const char *path, const char *up, const char *down,
                const char *act) {
    d.mlp.layout = DecoderMlp::Layout::Plain;
    d.mlp.path = path;
    d.mlp.up = up;
    d.mlp.down = down;
    d.mlp.activationPath = act;
  }
  void jointAttention(DecoderAttention::Layout layout, const char *path,
                      const char *joint, const char *output) {
    d.attention.layout = layout;
    d.attention.path = path;
    d.attention.joint = joint;
    d.attention.output = output;
  }

  void gptNeox() {
    d.embedding = "gpt_neox.embed_in";
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

const DecoderFamily families[] = {
    {"falcon",
     &FamilyReader::falcon,
     "activation",
     "layer_norm_epsilon",
     1e-5,
     {},
     false},
    {"gemma", &FamilyReader::gemma, "hidden_act", "rms_norm_eps", 1e-6, 0,
     true},
    {"gemma2", &FamilyReader::gemma, "hidden_act", "rms_norm_eps", 1e-6, 0,
     true},
    {"gemma3_text", &FamilyReader::gemma, "hidden_act", "rms_norm_eps", 1e-6, 0,
     true},
    {"gpt_neox",
     &FamilyReader::gptNeox,
     "hidden_act",
     "layer_norm_eps",
     1e-5,
     {},
     false},
    {"mpt", &FamilyReader::mpt, "", "layer_norm_epsilon", 1e-5, {}, false},
    {"olmo2", &FamilyReader::olmo2, "hidden_act", "rms_norm_eps", 1e-5, 1,
     true},
    {"opt", &FamilyReader::opt, "activation_function", "", 1e-5, 1, true},
    {"phi3", &FamilyReader::phi3, "hidden_act", "rms_norm_eps", 1e-5, 32000,
     true},
};

const DecoderFamily *find(const std::string &modelType) {
  for (const DecoderFamily &family : families)
    if (modelType == family.modelType)
      return &family;
  return nullptr;
}

/// Initial values as PreTrainedModel._init_weights and its overrides set them:
/// biases 0, the norms' weights 1 (Gemma: 0), all else normal.
plan::Initializer initOf(const TreeModule &module, const std::string &name,
                         const Decoder &decoder, double stddev) {
  if (name == "bias")
    return zerosInit();
  if (module.className.ends_with("Norm"))
    return decoder.norm == Decoder::Norm::RmsShifted ? zerosInit() : onesInit();
  return normalInit(stddev);
}

ModelInfo infoOf(const ModuleTree &tree, const Decoder &decoder,
                 double stddev) {
  ModelInfo info;
  for (const TreeModule &module : tree.modules)
    info.module(module.fqn, module.className);
  std::vector<size_t> places; // of each tree parameter in `info`
  for (const TreeParameter &parameter : tree.parameters) {
    if (parameter.tiedTo >= 0) {
      places.push_back(places[size_t(parameter.tiedTo)]);
      info.parameters[places.back()].aliases.push_back(parameter.fqn);
      continue;
    }
    places.push_back(info.parameters.size());
    std::string name = parameter.fqn.substr(parameter.fqn.rfind('.') + 1);
    info.parameter(
        parameter.fqn, parameter.shape,
        initOf(tree.modules[size_t(parameter.module)], name, decoder, stddev));
  }
  info.anatomy = {tree.base.value_or(""), tree.inputEmbedding.value_or(""),
                  tree.outputEmbedding.value_or(""), tree.noSplit};
  return info;
}

/// The architecture must be the family's ...ForCausalLM.
bool checkArchitecture(ConfigReader &json, const std::string &modelType,
                       const std::string &prefix) {
  const nlohmann::json *list = json.find("architectures");
  if (!list)
    return true; // AutoModelForCausalLM goes by model_type alone
  if (!list->is_array() || list->empty() || !list->front().is_string()) {
    json.error("architectures",
               "'architectures' must be a list of class names");
    return false;
  }
  std::string expected = prefix + "ForCausalLM";
  std::string name = list->front().get<std::string>();
  // MPT's own code writes its name in capitals.
  auto sameLetter = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  if (std::equal(name.begin(), name.end(), expected.begin(), expected.end(),
                 sameLetter))
    return true;
  std::string shown = "architecture '" + printable(name) + "' ";
  if (name.starts_with(prefix))
    json.unsupported("architectures.0", shown +
                                            "is not supported yet; "
                                            "supported is " +
                                            expected);
  else
    json.error("architectures.0", shown + "contradicts model_type '" +
                                      modelType + "', which is " + expected);
  return false;
}

} // namespace

bool accel::huggingface::isDecoderFamily(const std::string &modelType) {
  return find(modelType) != nullptr;
}

std::vector<std::string> accel::huggingface::decoderFamilyNames() {
  std::vector<std::string> names;
  for (const DecoderFamily &family : families)
    names.push_back(family.modelType);
  return names;
}

std::optional<DecoderConfig>
accel::huggingface::readDecoder(const std::string &modelType,
                                ConfigReader &json, const std::string &path,
                                DiagnosticEngine &diagnostics) {
  const DecoderFamily &family = *find(modelType);
  const moduletree::Family &description = *moduletree::findFamily(modelType);
  if (!checkArchitecture(json, modelType, description.prefix))
    return std::nullopt;
  FamilyReader reader{json, family, {}};
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
  (reader.*family.read)();
  std::optional<plan::DType> dtype = json.dtype();
  if (json.failed())
    return std::nullopt;

  double stddev = json.number("initializer_range", 0.02);
  if (modelType == "opt")
    stddev = json.number("init_std", 0.02);
  else if (stddev == 0)
    stddev = 0.02; // as transformers reads a 0
  DecoderConfig config;
  config.vocabSize = reader.tree.sizes.vocabulary;
  config.maxPositions = reader.tree.sizes.maxPositions;
  config.dtype = dtype;
  config.info = infoOf(reader.tree, reader.d, stddev);
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
