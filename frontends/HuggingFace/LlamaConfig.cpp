//===- LlamaConfig.cpp - Reads config.json of the Llama family ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/LlamaConfig.h"

#include "frontends/ConfigJson/ConfigReader.h"
#include "frontends/HuggingFace/EncoderConfig.h"
#include <algorithm>

using namespace accel;
using namespace accel::huggingface;

namespace {

/// A family's settings where config.json says nothing, as the configuration
/// classes of transformers 5 have them.
struct Defaults {
  Family family;
  const char *modelType, *classPrefix;
  int64_t vocab, intermediate, keyValueHeads /* 0: as heads */, maxPositions;
  int64_t headDim; // 0: hidden_size / num_attention_heads
  int64_t hidden = 4096, layers = 32;
  double rmsNormEps = 1e-6, theta = 10000;
  int64_t heads = 32, maxWindowLayers = 28;
  bool part = false; // of a model of images: no architecture of its own
};
constexpr Defaults families[] = {
    {Family::Llama, "llama", "Llama", 32000, 11008, 0, 2048, 0},
    {Family::Mistral, "mistral", "Mistral", 32000, 14336, 8, 131072, 0},
    {Family::Qwen2, "qwen2", "Qwen2", 151936, 22016, 32, 32768, 0},
    {Family::Qwen3, "qwen3", "Qwen3", 151936, 22016, 32, 32768, 128},
    {Family::Mixtral, "mixtral", "Mixtral", 32000, 14336, 8, 131072, 0, 4096,
     32, 1e-5, 1e6},
    {Family::Qwen3Moe, "qwen3_moe", "Qwen3Moe", 151936, 6144, 4, 32768, 0, 2048,
     24},
    {Family::Qwen2, "qwen2_vl_text", "Qwen2VL", 152064, 29568, 8, 32768, 0,
     8192, 80, 1e-5, 1e6, 64, 80, true},
    {Family::Qwen2, "qwen2_5_vl_text", "Qwen2_5_VL", 152064, 29568, 8, 32768, 0,
     8192, 80, 1e-5, 1e6, 64, 80, true},
    {Family::Qwen3, "qwen3_vl_text", "Qwen3VLText", 151936, 22016, 32, 128000,
     128, 4096, 32, 1e-6, 5e5, 32, 0, true},
};

class LlamaReader {
public:
  LlamaReader(ConfigReader &json) : json(json) {}

  std::optional<LlamaConfig> read(const std::optional<std::string> &type) {
    if (!type || !identify(*type))
      return std::nullopt;
    sizes();
    flags();
    RopeNames names;
    names.defaultTheta = defaults->theta;
    names.sections = defaults->part && config.family == Family::Qwen2;
    config.rope = readRope(json, config.maxPositions, names);
    attentionKind();
    if (isMixture())
      readMixture(json, config);
    config.dtype = json.dtype();
    if (json.failed())
      return std::nullopt;
    relations();
    if (json.failed())
      return std::nullopt;
    return config;
  }

private:
  /// Finds the family from model_type and architectures.
  bool identify(const std::string &type) {
    for (const Defaults &family : families)
      if (type == family.modelType)
        defaults = &family;
    if (!defaults) {
      json.unsupported("model_type", "model type '" + printable(type) +
                                         "' is not one of the Llama family");
      return false;
    }
    config.family = defaults->family;
    config.classPrefix = defaults->classPrefix;
    return defaults->part || architecture();
  }

  bool isMixture() const {
    return config.family == Family::Mixtral ||
           config.family == Family::Qwen3Moe;
  }

  bool architecture() {
    const std::string expected = config.classPrefix + "ForCausalLM";
    const std::optional<std::string> given = json.architecture(expected);
    if (!given)
      return false;
    const std::string &name = *given;
    if (name == expected)
      return true;
    if (name.rfind(config.classPrefix, 0) == 0) {
      json.unsupported("architectures.0",
                       "architecture '" + printable(name) +
                           "' is not supported yet; supported is " + expected);
      return false;
    }
    json.error("architectures.0", "architecture '" + printable(name) +
                                      "' contradicts model_type '" +
                                      defaults->modelType + "', which is " +
                                      expected);
    return false;
  }

  void sizes() {
    config.vocabSize =
        json.size("vocab_size", defaults->vocab, sizeLimits::vocab);
    config.hiddenSize =
        json.size("hidden_size", defaults->hidden, sizeLimits::size);
    config.intermediateSize = json.size(
        "intermediate_size", defaults->intermediate, sizeLimits::size);
    config.layers =
        json.size("num_hidden_layers", defaults->layers, sizeLimits::layers);
    config.heads =
        json.size("num_attention_heads", defaults->heads, sizeLimits::size);
    bool nullHeads = json.isNull("num_key_value_heads");
    int64_t otherwise = nullHeads || !defaults->keyValueHeads
                            ? config.heads
                            : defaults->keyValueHeads;
    config.keyValueHeads = json.size("num_key_value_heads", otherwise,
                                     sizeLimits::size, nullHeads);
    bool nullDim =
        json.isNull("head_dim") &&
        (config.family == Family::Llama || config.family == Family::Mistral ||
         config.family == Family::Mixtral);
    derivedHeadDim = !json.has("head_dim") ? defaults->headDim == 0 : nullDim;
    config.headDim =
        json.size("head_dim", defaults->headDim, sizeLimits::size, nullDim);
    config.maxPositions =
        json.size("max_position_embeddings", defaults->maxPositions,
                  sizeLimits::positions);
    config.rmsNormEps = json.number("rms_norm_eps", defaults->rmsNormEps);
    if (config.rmsNormEps < 0)
      json.error("rms_norm_eps", "'rms_norm_eps' must not be negative");
    config.initializerRange = json.number("initializer_range", 0.02);
    if (config.initializerRange < 0 || config.initializerRange > 1)
      json.error("initializer_range",
                 "'initializer_range' must be between 0 and 1");
    if (config.initializerRange == 0)
      config.initializerRange = 0.02; // as transformers reads a 0
    if (isMixture())
      refuseZeroDeviation(json);
    padding();
  }

  void padding() {
    if (!json.has("pad_token_id") || json.isNull("pad_token_id"))
      return;
    std::optional<int64_t> pad = json.integer("pad_token_id");
    if (!pad || config.vocabSize == 0)
      return;
    // A negative index counts from the end of the vocabulary.
    int64_t row = *pad < 0 ? *pad + config.vocabSize : *pad;
    if (row < 0 || row >= config.vocabSize)
      json.error("pad_token_id", "'pad_token_id' " + std::to_string(*pad) +
                                     " is outside the vocabulary of " +
                                     std::to_string(config.vocabSize) +
                                     " tokens");
    else
      config.paddingIndex = row;
  }

  void flags() {
    config.tieWordEmbeddings = json.flag("tie_word_embeddings", false);
    bool readsBias = config.family == Family::Llama ||
                     config.family == Family::Qwen3 ||
                     config.family == Family::Qwen3Moe;
    config.outputBias = readsBias && json.flag("attention_bias", false);
    config.queryKeyValueBias =
        config.outputBias || config.family == Family::Qwen2;
    config.queryKeyNorm =
        config.family == Family::Qwen3 || config.family == Family::Qwen3Moe;
    bool readsMlpBias = config.family == Family::Llama;
    config.mlpBias = readsMlpBias && json.flag("mlp_bias", false);
    if (!readsBias)
      ignored("attention_bias");
    if (!readsMlpBias)
      ignored("mlp_bias");
    if (std::optional<std::string> act = json.text("hidden_act")) {
      if (*act == "swish")
        config.activationClass = "SiLU";
      else if (*act != "silu")
        json.unsupported("hidden_act", "activation '" + printable(*act) +
                                           "' is not supported yet; supported "
                                           "is silu");
    }
    config.attentionDropout =
        json.probability("attention_dropout", 0.0, /*nullable=*/true);
    if (json.has("per_layer_config") && !json.isNull("per_layer_config"))
      json.unsupported("per_layer_config",
                       "'per_layer_config' is not supported yet");
  }

  /// Warns where a setting is on that the family's classes do not read.
  void ignored(const char *key) {
    const nlohmann::json *value = json.find(key);
    if (value && *value == true)
      json.warning(key, "ignored-key",
                   std::string("'") + key + "' has no effect for model type '" +
                       defaults->modelType + "'");
  }

  /// Which layers attend to a window, and how long it is.
  void attentionKind() {
    if (defaults->part && config.family == Family::Qwen3)
      return;
    if (config.family == Family::Llama || json.isNull("sliding_window"))
      return layerTypes(0);
    int64_t window = json.size("sliding_window", 4096, sizeLimits::positions);
    if (config.family == Family::Mistral)
      config.windows.assign(size_t(config.layers), window);
    else if (isMixture())
      wholeWindow(window);
    else
      layerTypes(json.flag("use_sliding_window", false) ? window : 0);
  }

  /// All layers have it: without the key mixtral has none, and qwen3_moe has it
  /// where use_sliding_window says so.
  void wholeWindow(int64_t window) {
    if (config.family == Family::Mixtral
            ? json.has("sliding_window")
            : json.flag("use_sliding_window", false))
      config.windows.assign(size_t(config.layers), window);
  }

  /// Qwen's `layer_types`, or what its configuration class makes of
  /// max_window_layers. Without a `window` no layer may ask for one.
  void layerTypes(int64_t window) {
    if (config.family != Family::Qwen2 && config.family != Family::Qwen3)
      return;
    const nlohmann::json *types = json.find("layer_types");
    if (!types) {
      int64_t first = json.has("max_window_layers")
                          ? json.integer("max_window_layers").value_or(0)
                          : defaults->maxWindowLayers;
      for (int64_t i = 0; window && i < config.layers; ++i)
        config.windows.push_back(i >= first ? window : 0);
      return;
    }
    if (!types->is_array()) {
      json.error("layer_types", "'layer_types' must be a list");
      return;
    }
    if (config.layers && int64_t(types->size()) != config.layers) {
      json.error("layer_types", "'layer_types' has " +
                                    std::to_string(types->size()) +
                                    " entries for " +
                                    std::to_string(config.layers) + " layers");
      return;
    }
    for (size_t i = 0; i < types->size(); ++i) {
      std::string key = "layer_types." + std::to_string(i);
      const nlohmann::json &type = (*types)[i];
      bool sliding = type == "sliding_attention";
      if (!sliding && type != "full_attention") {
        json.unsupported(key, "supported as 'layer_types' are full_attention "
                              "and sliding_attention");
        return;
      }
      if (sliding && !window) {
        json.error(key, "a layer has sliding_attention, but "
                        "'use_sliding_window' is false or 'sliding_window' "
                        "is null");
        return;
      }
      config.windows.push_back(sliding ? window : 0);
    }
  }

  /// What several sizes must satisfy together.
  void relations() {
    auto mustDivide = [&](const char *key, int64_t a, const char *what,
                          int64_t b) {
      json.error(key, std::string("'") + key + "' " + std::to_string(a) +
                          " is not a multiple of '" + what + "' " +
                          std::to_string(b));
    };
    if ((derivedHeadDim || config.family == Family::Llama) &&
        config.hiddenSize % config.heads) {
      mustDivide("hidden_size", config.hiddenSize, "num_attention_heads",
                 config.heads);
      return;
    }
    if (derivedHeadDim)
      config.headDim = config.hiddenSize / config.heads;
    if (defaults->part && config.family == Family::Qwen2)
      sections();
    if (config.heads % config.keyValueHeads) {
      mustDivide("num_attention_heads", config.heads, "num_key_value_heads",
                 config.keyValueHeads);
      return;
    }
    if (config.headDim % 2) {
      json.error(json.has("head_dim") ? "head_dim" : "num_attention_heads",
                 "rotary embeddings need an even head dimension, not " +
                     std::to_string(config.headDim));
      return;
    }
    checkRope(json, config.rope, config.headDim);
    double attention = double(config.headDim) * config.hiddenSize * 2 *
                       double(config.heads + config.keyValueHeads);
    double mlp = 3.0 * config.hiddenSize * double(config.intermediateSize);
    double experts = 3.0 * config.hiddenSize * double(config.mixture.experts) *
                     double(config.mixture.intermediateSize);
    double embeddings = 2.0 * config.vocabSize * double(config.hiddenSize);
    if (embeddings + config.layers * (attention + std::max(mlp, experts)) >
        sizeLimits::parameters)
      json.error("", "these sizes make a model of more than 1e15 parameters");
  }

  /// Heads of Qwen2-VL have hidden_size / num_attention_heads elements, and
  /// mrope_section splits their pairs.
  void sections() {
    if (config.headDim * config.heads != config.hiddenSize)
      return json.error("head_dim",
                        "'head_dim' must be hidden_size / num_attention_heads "
                        "here, " +
                            std::to_string(config.hiddenSize / config.heads));
    const std::string object = ropeSection(json),
                      key = (object.empty() ? "" : object + ".") +
                            "mrope_section";
    const nlohmann::json *given = object.empty() ? nullptr : json.find(key);
    int64_t pairs = given ? 0 : 64; // of [16, 24, 24]
    if (given && given->is_array())
      for (const nlohmann::json &part : *given)
        pairs += part.is_number_unsigned() && part < sizeLimits::size
                     ? part.get<int64_t>()
                     : sizeLimits::size;
    if (pairs != config.headDim / 2)
      json.error(given ? key : object,
                 "'mrope_section' must be a list whose sum is the " +
                     std::to_string(config.headDim / 2) + " pairs of a head" +
                     (given ? "" : "; it is [16, 24, 24] where absent"));
  }

  ConfigReader &json;
  LlamaConfig config;
  const Defaults *defaults = nullptr;
  bool derivedHeadDim = false;
};

} // namespace

std::optional<std::string> accel::huggingface::modelType(ConfigReader &json) {
  if (!json.root().is_object()) {
    json.error("", "expected a JSON object with a model's configuration");
    return std::nullopt;
  }
  std::optional<std::string> type = json.text("model_type");
  if (!type && !json.failed())
    json.error("model_type", "'model_type' is missing; this is not a Hugging "
                             "Face model configuration");
  return type;
}

bool accel::huggingface::isLlamaFamily(const std::string &modelType) {
  for (const Defaults &family : families)
    if (modelType == family.modelType)
      return !family.part;
  return false;
}

std::optional<LlamaConfig> accel::huggingface::readLlama(ConfigReader &json) {
  return LlamaReader(json).read(modelType(json));
}

std::optional<LlamaConfig>
accel::huggingface::readLlama(ConfigReader &json,
                              const std::string &modelType) {
  return LlamaReader(json).read(modelType);
}

std::optional<LlamaConfig>
accel::huggingface::parseLlamaConfig(const std::string &text,
                                     const std::string &path,
                                     DiagnosticEngine &diagnostics) {
  ConfigReader json(text, path, diagnostics);
  if (json.failed())
    return std::nullopt;
  return readLlama(json);
}
