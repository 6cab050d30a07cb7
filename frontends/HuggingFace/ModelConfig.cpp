//===- ModelConfig.cpp - Any supported config.json ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/ModelConfig.h"

#include "frontends/ConfigJson/ConfigReader.h"
#include "frontends/HuggingFace/Safetensors.h"
#include "frontends/HuggingFace/TiedWeights.h"
#include "frontends/HuggingFace/Wrapped.h"

#include <algorithm>
#include <filesystem>

using namespace accel;
using namespace accel::huggingface;

static constexpr uint64_t maxConfigBytes = 16'000'000;

int64_t ModelConfig::vocabSize() const {
  return std::visit([](const auto &c) { return c.vocabSize; }, family);
}
int64_t ModelConfig::maxPositions() const {
  int64_t most =
      std::visit([](const auto &c) { return c.maxPositions; }, family);
  if (const auto *c = std::get_if<LlamaConfig>(&family))
    return c->rope.reach(most);
  if (const DecoderConfig *c = decoderOf(this))
    for (const Rope &rope : c->decoder.ropes)
      most = rope.reach(most);
  return most;
}
int64_t ModelConfig::defaultLength() const {
  return std::min<int64_t>(4096, maxPositions());
}
std::optional<plan::DType> ModelConfig::dtype() const {
  return std::visit([](const auto &c) { return c.dtype; }, family);
}
bool ModelConfig::hasDeltaRule() const {
  const DecoderConfig *config = decoderOf(this);
  return config &&
         std::ranges::any_of(config->decoder.kinds, &DecoderLayerKind::delta);
}

bool ModelConfig::hasMamba() const {
  using Blocks = DecoderLayerKind::Blocks;
  const DecoderConfig *config = decoderOf(this);
  return config && std::ranges::count(config->decoder.kinds, Blocks::Mamba,
                                      &DecoderLayerKind::blocks) > 0;
}

const DecoderConfig *accel::huggingface::decoderOf(const ModelConfig *config) {
  return config ? std::get_if<DecoderConfig>(&config->family) : nullptr;
}

std::vector<std::string> accel::huggingface::supportedModelTypes() {
  std::vector<std::string> types = decoderFamilyNames();
  for (const char *type :
       {"bert", "gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3",
        "qwen3_moe", "roberta", "t5", "vit", "whisper"})
    types.push_back(type);
  for (const std::string &type : wrapperNames())
    types.push_back(type);
  std::sort(types.begin(), types.end());
  return types;
}

/// What causal language models of transformers 5.23 have that no family here
/// has.
static constexpr struct {
  const char *modelType, *part;
} unknownParts[] = {
    {"apertus", "the activation xIELU, which has parameters of its own"},
    {"bamba", "layers of Mamba-2 with an MLP behind them"},
    {"bloom", "ALiBi by its own slopes and a norm behind the embedding"},
    {"codegen", "queries, keys and values in four parts of one projection"},
    {"deepseek_v2",
     "rotary embeddings in complex numbers and a softmax router of groups"},
    {"deepseek_v32", "attention to tokens that an indexer chooses"},
    {"diffllama", "the difference of two attentions"},
    {"falcon_h1", "Mamba-2 beside attention in one layer"},
    {"falcon_mamba", "layers of Mamba"},
    {"gemma3n", "embeddings of each layer, AltUp and LAuReL"},
    {"gemma3n_text", "embeddings of each layer, AltUp and LAuReL"},
    {"gemma4", "embeddings of each layer and keys that layers share"},
    {"gemma4_text", "embeddings of each layer and keys that layers share"},
    {"glm_moe_dsa", "attention to tokens that an indexer chooses"},
    {"gptj", "parallel blocks with neighbours that are turned in a part of a "
             "head"},
    {"granite_swa", "attention sinks beside Granite's factors"},
    {"jamba", "layers of Mamba"},
    {"kimi_linear", "linear attention (KDA)"},
    {"lfm2", "short convolutions in place of attention"},
    {"lfm2_moe", "short convolutions in place of attention"},
    {"llama4", "attention in chunks and queries that are scaled by position"},
    {"llama4_text",
     "attention in chunks and queries that are scaled by position"},
    {"mamba", "layers of Mamba"},
    {"mamba2", "a model of Mamba-2 alone"},
    {"minimax", "linear attention (lightning attention)"},
    {"nemotron", "LayerNorm of 1 + weight"},
    {"olmo", "LayerNorm without weights"},
    {"phimoe", "a router by SparseMixer"},
    {"recurrent_gemma", "recurrent blocks (RG-LRU)"},
    {"rwkv", "recurrent blocks (RWKV)"},
    {"xlstm", "recurrent blocks (mLSTM)"},
    {"zamba", "layers of Mamba"},
    {"zamba2", "layers of Mamba-2 beside blocks that layers share"},
};

static void unknownType(const std::string &type, ConfigReader &json) {
  for (const auto &[name, part] : unknownParts)
    if (type == name)
      return json.unsupported(
          "model_type",
          "model type '" + type + "' is not supported yet: it has " + part +
              ", which no family here has",
          "export the model: tools/export-model NAME -o model.pt2, and pass "
          "--model model.pt2");
  std::vector<std::string> types = supportedModelTypes();
  std::string list;
  for (size_t i = 0; i < types.size(); ++i)
    list += (i == 0 ? "" : i + 1 < types.size() ? ", " : " and ") + types[i];
  // A model of several inputs around a language model.
  const auto inner = json.text("text_config.model_type");
  if (inner && std::find(types.begin(), types.end(), *inner) != types.end())
    return json.unsupported(
        "model_type",
        "model type '" + printable(type) +
            "' has parts beside its language model, which are not read yet",
        "to plan the language model alone ('" + printable(*inner) +
            "'), pass a folder whose config.json is what stands in "
            "text_config; export the whole model with tools/export-model NAME "
            "-o model.pt2, and pass --model model.pt2");
  std::string hint = didYouMean(type, types);
  json.unsupported("model_type",
                   "model type '" + printable(type) +
                       "' is not supported yet; supported are " + list,
                   hint + (hint.empty() ? "" : " else ") +
                       "export the model: tools/export-model NAME -o "
                       "model.pt2, and pass --model model.pt2");
}

std::optional<ModelConfig>
accel::huggingface::parseModelConfig(const std::string &text,
                                     const std::string &path,
                                     DiagnosticEngine &diagnostics) {
  ConfigReader json(text, path, diagnostics);
  if (json.failed())
    return std::nullopt;
  std::optional<std::string> type = modelType(json);
  if (!type)
    return std::nullopt;
  // AutoConfig.from_pretrained makes another class of it.
  if (*type == "mistral" && json.has("layer_types")) {
    json.unsupported(
        "layer_types",
        "transformers reads a 'mistral' with 'layer_types' as a 'ministral'",
        "write \"model_type\": \"ministral\" and \"architectures\": "
        "[\"MinistralForCausalLM\"], or leave 'layer_types' out");
    return std::nullopt;
  }
  std::optional<ModelConfig> result;
  auto take = [&](auto config) {
    if (config)
      result = ModelConfig{std::move(*config)};
  };
  if (*type == "gpt2")
    take(readGpt2(json));
  else if (*type == "bert" || *type == "roberta")
    take(readBert(json, *type == "roberta"));
  else if (*type == "vit")
    take(readVit(json));
  else if (*type == "t5")
    take(readT5(json));
  else if (*type == "whisper")
    take(readWhisper(json));
  else if (isWrapper(*type))
    take(readWrapped(*type, json, path, diagnostics));
  else if (isDecoderFamily(*type))
    take(readDecoder(*type, json, path, diagnostics));
  else if (isLlamaFamily(*type))
    take(readLlama(json));
  else
    unknownType(*type, json);
  if (result)
    result->modelType = *type;
  return result;
}

std::optional<ModelConfig>
accel::huggingface::readModelConfig(const std::string &path,
                                    DiagnosticEngine &diagnostics) {
  std::error_code ignored;
  std::string file = path, text;
  if (std::filesystem::is_directory(path, ignored))
    file = (std::filesystem::path(path) / "config.json").string();
  if (!readFile(file, maxConfigBytes, text, diagnostics))
    return std::nullopt;
  std::optional<ModelConfig> config = parseModelConfig(text, file, diagnostics);
  if (config && isWrapper(config->modelType)) {
    DiagnosticEngine silent; // as below
    const auto folder = std::filesystem::path(file).parent_path();
    if (auto weights = readWeights(folder.string(), silent))
      nameTower(std::get<DecoderConfig>(config->family), *weights);
  }
  if (auto *t5 = config ? std::get_if<T5Config>(&config->family) : nullptr) {
    DiagnosticEngine silent; // checkWeights reports what is wrong with them
    const auto folder = std::filesystem::path(file).parent_path();
    if (auto weights = readWeights(folder.string(), silent))
      t5->ownHead = areHeldApart(*weights, "shared.weight", "lm_head.weight");
  }
  return config;
}

bool accel::huggingface::setBalancing(ModelConfig &config, double coefficient) {
  Mixture *mixture = nullptr;
  if (auto *llama = std::get_if<LlamaConfig>(&config.family))
    mixture = &llama->mixture;
  else if (auto *decoder = std::get_if<DecoderConfig>(&config.family))
    mixture = &decoder->decoder.mixture;
  if (!mixture || !mixture->balances || !mixture->sparseLayers())
    return false;
  mixture->auxiliary =
      coefficient == 0 ? std::nullopt : std::optional(coefficient);
  return true;
}

ModelInfo accel::huggingface::describeModel(const ModelConfig &config) {
  return std::visit([](const auto &c) -> ModelInfo { return describeModel(c); },
                    config.family);
}
