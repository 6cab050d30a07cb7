//===- DecoderReader.cpp - What all decoder families read -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/DecoderReader.h"

#include <algorithm>
#include <cctype>
#include <cmath>

using namespace accel;
using namespace accel::huggingface;

double DecoderReader::number(const char *name) const {
  auto it = tree.numbers.find(name);
  return it == tree.numbers.end() ? 0 : it->second;
}

/// The key that a message about several should point at.
std::string
DecoderReader::firstOf(std::initializer_list<const char *> keys) const {
  for (const char *key : keys)
    if (json.has(key))
      return key;
  return "";
}

void DecoderReader::checkSizes() {
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
               {"mamba_num_heads", sizeLimits::size},
               {"mamba_head_dim", sizeLimits::size},
               {"mamba_n_groups", sizeLimits::size},
               {"mamba_d_conv", sizeLimits::size},
               {"mamba_chunk_size", sizeLimits::size},
               {"n_groups", sizeLimits::size},
               {"ssm_state_size", sizeLimits::size},
               {"conv_kernel", sizeLimits::size},
               {"chunk_size", sizeLimits::size},
               {"linear_num_key_heads", sizeLimits::size},
               {"linear_num_value_heads", sizeLimits::size},
               {"linear_key_head_dim", sizeLimits::size},
               {"linear_value_head_dim", sizeLimits::size},
               {"linear_conv_kernel_dim", sizeLimits::size},
               {"full_attention_interval", sizeLimits::layers},
               {"moe_latent_size", sizeLimits::size, true},
               {"sliding_window", sizeLimits::positions, true}};
  // Qwen2-MoE writes a window of 0 where it has none.
  const nlohmann::json *window = json.find("sliding_window");
  const bool none =
      window && *window == 0 && std::string(family.modelType) == "qwen2_moe";
  for (const auto &entry : sizes)
    if (json.has(entry.key) &&
        !(none && std::string(entry.key) == "sliding_window"))
      json.size(entry.key, 1, entry.limit, entry.nullable);
  for (const char *key : {"initializer_range", "init_std"})
    if (double value = json.number(key, 0); value < 0 || value > 1)
      json.error(key, std::string("'") + key + "' must be between 0 and 1");
  for (const char *key :
       {"do_layer_norm_before", "new_decoder_architecture", "multi_query",
        "alibi", "parallel_attn", "bias", "use_parallel_residual",
        "attention_bias", "tie_word_embeddings"})
    if (json.has(key) && !json.isNull(key))
      json.flag(key, false);
  for (const char *key :
       {"partial_rotary_factor", "rope_parameters.partial_rotary_factor",
        "rope_scaling.partial_rotary_factor"})
    if (double part = json.number(key, 1, /*nullable=*/true);
        part <= 0 || part > 1)
      json.error(key,
                 std::string("'") + key + "' must be above 0 and at most 1");
  if (const auto *section = json.find("attn_config");
      section && !section->is_object())
    json.error("attn_config", "'attn_config' must be an object");
  checkLayerTypes();
}

/// As transformers' own check does.
void DecoderReader::checkLayerTypes() {
  const nlohmann::json *types = json.find("layer_types");
  if (!types || json.failed() || family.hybrid)
    return;
  if (!types->is_array()) {
    json.error("layer_types", "'layer_types' must be a list");
    return;
  }
  const char *key = json.has("n_layers") ? "n_layers" : "num_hidden_layers";
  if (int64_t layers = json.size(key, 0, sizeLimits::layers);
      layers && int64_t(types->size()) != layers)
    json.error("layer_types",
               "'layer_types' has " + std::to_string(types->size()) +
                   " entries for " + std::to_string(layers) + " layers");
  for (size_t i = 0; i < types->size(); ++i) {
    const std::string place = "layer_types." + std::to_string(i);
    const nlohmann::json &type = (*types)[i];
    if (!type.is_string())
      json.error(place, "a type of layer must be a string");
    else if (type != "full_attention" && type != "sliding_attention")
      json.unsupported(place,
                       "supported as 'layer_types' are full_attention and "
                       "sliding_attention, not '" +
                           printable(type.get<std::string>()) + "'");
    if (json.failed())
      return;
  }
}

void DecoderReader::shared() {
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
  d.normEps = *family.eps ? json.number(family.eps, family.defaultEps)
                          : family.defaultEps;
  if (d.normEps < 0)
    json.error(family.eps,
               std::string("'") + family.eps + "' must not be negative");
  activation();
  padding();
  if (json.has("per_layer_config") && !json.isNull("per_layer_config"))
    json.unsupported("per_layer_config",
                     "'per_layer_config' is not supported yet");
  if (json.find("use_bidirectional_attention") &&
      json.flag("use_bidirectional_attention", false))
    json.unsupported("use_bidirectional_attention",
                     "bidirectional attention is not supported yet");
  // A dimension that heads share must divide.
  if (d.hiddenSize % d.heads && family.headsDivide)
    json.error(
        firstOf({"num_attention_heads", "n_heads", "hidden_size", "d_model"}),
        "the hidden size " + std::to_string(d.hiddenSize) +
            " is not a multiple of the " + std::to_string(d.heads) + " heads");
  else if (d.keyValueHeads < 1 || d.heads % d.keyValueHeads)
    json.error("num_key_value_heads", "the " + std::to_string(d.heads) +
                                          " heads are not a multiple of the " +
                                          std::to_string(d.keyValueHeads) +
                                          " key heads");
}

void DecoderReader::activation() {
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

void DecoderReader::padding() {
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

double DecoderReader::dropout(const char *key, double otherwise) {
  return json.probability(key, otherwise, /*nullable=*/true);
}

double DecoderReader::cap(const char *key, double otherwise) {
  if (json.isNull(key))
    return 0;
  double value = json.number(key, otherwise);
  if (json.has(key) && value <= 0)
    json.error(key, std::string("'") + key + "' must be positive or null");
  return value;
}

void DecoderReader::rope(const RopeNames &names) {
  d.joinsTurned = names.partialAllowed;
  addRope(readRope(json, tree.sizes.maxPositions, names));
}

void DecoderReader::addRope(const Rope &rope) {
  int64_t width = rope.width(d.headDim);
  if (!json.failed() && (width < 2 || width > d.headDim))
    json.error(firstOf({"head_dim", "rotary_pct", "partial_rotary_factor",
                        "num_attention_heads", "hidden_size"}),
               "rotary embeddings turn " + std::to_string(width) + " of the " +
                   std::to_string(d.headDim) + " elements of a head");
  checkRope(json, rope, d.headDim);
  d.ropes.push_back(rope);
}

void DecoderReader::windows(int64_t window) {
  for (size_t i = 0; i < d.kinds.size() && i < tree.attention.size(); ++i)
    if (tree.attention[i] == Attention::Sliding)
      d.kinds[i].window = window;
}

void DecoderReader::slidingWindows() {
  const int64_t window = size("sliding_window");
  if (!window && std::find(tree.attention.begin(), tree.attention.end(),
                           Attention::Sliding) != tree.attention.end())
    json.error(firstOf({"sliding_window", "layer_types"}),
               "layers of 'sliding_attention' need a 'sliding_window'");
  windows(window);
}

void DecoderReader::layerNorms(const char *attention, const char *mlp) {
  d.norm = Decoder::Norm::Layer;
  d.beforeAttention = attention;
  d.beforeMlp = mlp;
}

void DecoderReader::plainMlp(const char *path, const char *up, const char *down,
                             const char *act) {
  d.mlp.layout = DecoderMlp::Layout::Plain;
  d.mlp.path = path;
  d.mlp.up = up;
  d.mlp.down = down;
  d.mlp.activationPath = act;
}

void DecoderReader::layersThatTurn() {
  const nlohmann::json *given = json.find("no_rope_layers");
  const bool listed = given && !given->is_null();
  const int64_t interval = size("no_rope_layer_interval");
  if (listed && (!given->is_array() || given->size() != d.kinds.size()))
    return json.error("no_rope_layers",
                      "'no_rope_layers' must be a list of a number for each "
                      "layer, 1 where it has rotary positions");
  if (!listed && interval < 1)
    return json.error("no_rope_layer_interval",
                      "'no_rope_layer_interval' must be 1 or more");
  for (size_t i = 0; i < d.kinds.size(); ++i)
    d.kinds[i].turns =
        listed ? (*given)[i] != 0 : (int64_t(i) + 1) % interval != 0;
}

static plan::Initializer initOf(const TreeModule &module,
                                const std::string &name, const Decoder &decoder,
                                double stddev) {
  if (module.className.ends_with("TopKRouter")) // its bias too
    return normalInit(stddev);
  const MambaMixer &mamba = decoder.mamba;
  if (decoder.delta.heads && name == "dt_bias")
    return onesInit();
  // Logarithms of numbers up to 16; nobody draws them, as accel-run has no
  // kernel of these layers.
  if (decoder.delta.heads && name == "A_log")
    return uniformInit(std::log(0.01), std::log(16.0));
  // softplus of it is between time_step_min and time_step_max.
  if (name == "dt_bias")
    return uniformInit(std::log(std::expm1(mamba.stepMin)),
                       std::log(std::expm1(mamba.stepMax)));
  if (name == "bias" || name.ends_with("_bias"))
    return zerosInit();
  // What is added to the residual, as in GPT-2.
  if (decoder.residualInitByDepth && module.fqn.ends_with("c_proj"))
    return normalInit(stddev / std::sqrt(2.0 * double(decoder.kinds.size())));
  if (name == "D" || module.className.ends_with("NormGated"))
    return onesInit();
  // Logarithms of 1 to the number of heads; nobody draws it, as accel-run has
  // no kernel of these layers.
  if (name == "A_log")
    return uniformInit(0, std::log(static_cast<double>(mamba.heads)));
  if (mamba.scalesOutput && module.fqn.ends_with(".out_proj")) {
    const double bound =
        1 / std::sqrt(static_cast<double>(mamba.heads * mamba.headDim) *
                      static_cast<double>(decoder.kinds.size()));
    return uniformInit(-bound, bound);
  }
  if (module.className.ends_with("Norm"))
    return decoder.norm == Decoder::Norm::RmsShifted ? zerosInit() : onesInit();
  return normalInit(stddev);
}

/// Checkpoints hold each expert's matrices apart (transformers'
/// conversion_mapping.py).
static void storeExperts(ParameterInfo &parameter) {
  const std::string &fqn = parameter.fqn;
  const std::string each = fqn.substr(0, fqn.rfind('.')) + ".*.";
  if (fqn.ends_with(".experts.gate_up_proj"))
    parameter.stored = {each + "gate_proj.weight", each + "up_proj.weight"};
  else if (fqn.ends_with(".experts.up_proj"))
    parameter.stored = {each + "up_proj.weight"};
  else if (fqn.ends_with(".experts.down_proj"))
    parameter.stored = {each + "down_proj.weight"};
}

/// Those of Granite hold the experts' matrices as the model does.
static void storeGranite(ParameterInfo &parameter) {
  for (auto [own, stored] :
       {std::pair(".experts.gate_up_proj", ".input_linear.weight"),
        {".experts.down_proj", ".output_linear.weight"},
        {".router.weight", ".router.layer.weight"}})
    if (const std::string &fqn = parameter.fqn; fqn.ends_with(own))
      parameter.stored = {fqn.substr(0, fqn.size() - std::string(own).size()) +
                          stored};
}

/// Checkpoints call the base model `base`.
static void storeBase(ParameterInfo &parameter, const std::string &base) {
  const std::string own = "model.";
  if (base.empty() || !parameter.fqn.starts_with(own))
    return;
  if (parameter.stored.empty())
    parameter.stored = {parameter.fqn};
  for (std::string &name : parameter.stored)
    name.replace(0, own.size(), base);
}

ModelInfo accel::huggingface::describeTree(
    const ModuleTree &tree,
    const std::function<plan::Initializer(const TreeParameter &)> &initOf,
    const std::function<void(ParameterInfo &)> &store) {
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
    info.parameter(parameter.fqn, parameter.shape, initOf(parameter));
    store(info.parameters.back());
  }
  info.anatomy = {tree.base.value_or(""), tree.inputEmbedding.value_or(""),
                  tree.outputEmbedding.value_or(""), tree.noSplit};
  return info;
}

ModelInfo DecoderReader::info(double stddev) const {
  ModelInfo info = describeTree(
      tree,
      [&](const TreeParameter &parameter) {
        return initOf(tree.modules[size_t(parameter.module)],
                      parameter.fqn.substr(parameter.fqn.rfind('.') + 1), d,
                      stddev);
      },
      [&](ParameterInfo &parameter) {
        if (parameter.fqn == "lm_head.weight" && !storedHead.empty())
          parameter.stored = {storedHead};
        if (d.mixture.softmaxOfChosen)
          storeGranite(parameter);
        else if (!d.mixture.clamped)
          storeExperts(parameter);
        storeBase(parameter, storedBase);
      });
  for (size_t i = 0; d.mixture.sigmoid && i < d.kinds.size(); ++i)
    if (d.kinds[i].sparse)
      info.buffers.push_back({choiceBiasOf(d, i), {d.mixture.experts}});
  return info;
}

bool DecoderReader::checkArchitecture(const std::string &prefix) {
  const std::string expected = prefix + "ForCausalLM";
  const std::optional<std::string> given = json.architecture(expected);
  if (!given)
    return false;
  const std::string &name = *given;
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
                                      family.modelType + "', which is " +
                                      expected);
  return false;
}
