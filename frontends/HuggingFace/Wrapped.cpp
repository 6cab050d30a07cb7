//===- Wrapped.cpp - Language models inside models of images --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Wrapped.h"

#include "frontends/HuggingFace/DecoderReader.h"
#include "frontends/HuggingFace/LlamaConfig.h"
#include "frontends/ModuleTree/Description.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace accel;
using namespace accel::huggingface;

namespace {

/// How files name parameters (conversion_mapping.py of transformers).
enum class Stored { Llava, QwenVl, AsIs };

struct Wrapper {
  const char *modelType;
  const char *text; // the language model's, where text_config says none
  Stored stored;
  const char *beside; // modules beside the language model
  bool flat = false;  // its settings may stand outside text_config
};
constexpr const char *towerAndProjector =
    "vision_tower and multi_modal_projector";
constexpr Wrapper wrappers[] = {
    {"gemma3", "gemma3_text", Stored::Llava, towerAndProjector},
    {"llava", "llama", Stored::Llava, towerAndProjector},
    {"mistral3", "mistral", Stored::Llava, towerAndProjector},
    {"qwen2_5_vl", "qwen2_5_vl_text", Stored::QwenVl, "visual", true},
    {"qwen2_vl", "qwen2_vl_text", Stored::QwenVl, "visual", true},
    {"qwen3_5", "qwen3_5_text", Stored::AsIs, "visual"},
    {"qwen3_5_moe", "qwen3_5_moe_text", Stored::AsIs, "visual"},
    {"qwen3_vl", "qwen3_vl_text", Stored::AsIs, "visual"}};

const Wrapper *find(const std::string &modelType) {
  for (const Wrapper &wrapper : wrappers)
    if (modelType == wrapper.modelType)
      return &wrapper;
  return nullptr;
}

constexpr const char *inner = "model.", *outer = "model.language_model.";

/// "model.layers" of the language model in the whole one.
std::string moved(const std::string &name) {
  return name.starts_with(inner)
             ? outer + name.substr(std::string(inner).size())
             : name;
}

void move(Decoder &d) {
  for (std::string *name : {&d.embedding, &d.positions, &d.projectIn, &d.rotary,
                            &d.layers, &d.finalNorm, &d.projectOut})
    *name = moved(*name);
}

int64_t product(const std::vector<int64_t> &shape, size_t from) {
  int64_t n = 1;
  for (size_t i = from; i < shape.size(); ++i)
    n *= shape[i];
  return n;
}

plan::Initializer xavier(const std::vector<int64_t> &shape) {
  const auto field = static_cast<double>(product(shape, 2));
  const double bound =
      std::sqrt(6 / (field * static_cast<double>(shape[0] + shape[1])));
  return uniformInit(-bound, bound);
}

/// torch's trunc_normal_ cuts off at two deviations of what is asked for, which
/// leaves this share of the deviation.
constexpr double truncatedShare = 0.87962566103423978;

/// As SiglipPreTrainedModel._init_weights sets them.
plan::Initializer siglipInit(const std::string &owner,
                             const std::string &module, const std::string &name,
                             const TreeParameter &p) {
  const bool bias = name == "bias" || name == "in_proj_bias";
  if (owner == "SiglipMLP")
    return bias ? normalInit(1e-6) : xavier(p.shape);
  if (bias)
    return zerosInit();
  if (module == "Embedding")
    return normalInit(1 / std::sqrt(static_cast<double>(p.shape[1])));
  if (owner == "SiglipAttention" || name == "probe" || name == "in_proj_weight")
    return xavier(p.shape);
  const auto fan = static_cast<double>(product(p.shape, 1));
  return truncatedNormalInit(std::sqrt(1 / fan) / truncatedShare);
}

/// What first values depend on.
struct TowerNumbers {
  double stddev;  // of what stands outside of the tower, and of most towers
  double range;   // the tower's own initializer_range
  double factor;  // its initializer_factor
  int64_t layers; // of CLIP
};

/// As CLIPPreTrainedModel._init_weights sets them.
plan::Initializer clipInit(const TowerNumbers &numbers,
                           const std::string &module, const std::string &name,
                           const TreeParameter &p) {
  const auto shrunk = [&](int64_t width) {
    return normalInit(numbers.factor / std::sqrt(static_cast<double>(width)));
  };
  const std::string last = module.substr(module.rfind('.') + 1);
  if (name == "bias")
    return zerosInit();
  if (name == "class_embedding")
    return shrunk(p.shape[0]);
  if (last == "patch_embedding" || last == "position_embedding")
    return normalInit(numbers.range * numbers.factor);
  if (last == "fc1")
    return shrunk(2 * p.shape[1]);
  if (last == "out_proj")
    return shrunk(p.shape[0]);
  return shrunk(p.shape[0] * 2 * numbers.layers);
}

/// First values of what is no part of the language model.
plan::Initializer towerInit(const ModuleTree &tree, const TreeParameter &p,
                            const TowerNumbers &numbers) {
  const TreeModule &module = tree.modules[static_cast<size_t>(p.module)];
  const std::string name = p.fqn.substr(p.fqn.rfind('.') + 1);
  const bool bias = name == "bias";
  if (tree.modelType == "gemma3" &&
      module.fqn.starts_with("model.multi_modal_projector"))
    return zerosInit();
  if (module.className.ends_with("Norm"))
    return bias ? zerosInit() : onesInit();
  const std::string &owner =
      tree.modules[static_cast<size_t>(std::max(module.parent, 0))].className;
  if (owner.starts_with("CLIP") || module.className.starts_with("CLIP"))
    return clipInit(numbers, module.fqn, name, p);
  if (owner.starts_with("Siglip") || module.className.starts_with("Siglip") ||
      owner == "MultiheadAttention")
    return siglipInit(owner, module.className, name, p);
  return bias ? zerosInit() : normalInit(numbers.stddev);
}

/// Files name the parts without "model."; the language model has a "model." of
/// its own ("llava"), or that alone ("Qwen2VLForConditionalGeneration").
std::string storedName(Stored stored, const std::string &fqn) {
  if (stored == Stored::AsIs)
    return fqn;
  const std::string language = stored == Stored::Llava ? "language_model." : "";
  if (fqn == "lm_head.weight")
    return language + fqn;
  if (fqn.starts_with(outer))
    return language + inner + fqn.substr(std::string(outer).size());
  return fqn.starts_with(inner) ? fqn.substr(std::string(inner).size()) : fqn;
}

bool checkArchitecture(ConfigReader &json, const std::string &expected) {
  const std::optional<std::string> name = json.architecture(expected);
  if (name && *name != expected)
    json.unsupported("architectures.0",
                     "architecture '" + printable(*name) +
                         "' is not supported yet; supported is " + expected);
  return name == expected;
}

/// The language model as a model of its own.
std::optional<DecoderConfig> readText(const Wrapper &wrapper,
                                      ConfigReader &json,
                                      const std::string &path,
                                      DiagnosticEngine &diagnostics) {
  const nlohmann::json *given = json.find("text_config");
  if (given ? !given->is_object() : !wrapper.flat) {
    json.error(given ? "text_config" : "",
               given ? "'text_config' must be an object"
                     : "'text_config' is missing");
    return std::nullopt;
  }
  std::optional<ConfigReader::Section> section;
  std::string type = wrapper.text;
  if (given) {
    section.emplace(json, "text_config");
    type = json.text("model_type").value_or(type);
  }
  // Of LLaVA's models some have Mistral's and Qwen2's, and of Mistral's some
  // Ministral 3's.
  const bool isLlava = std::string(wrapper.modelType) == "llava";
  const bool isMistral = std::string(wrapper.modelType) == "mistral3";
  const bool others = (isLlava && (type == "mistral" || type == "qwen2")) ||
                      (isMistral && type == "ministral3");
  if (type != wrapper.text && !others) {
    if (!json.failed())
      json.unsupported("model_type", "a language model of type '" +
                                         printable(type) + "' in '" +
                                         wrapper.modelType +
                                         "' is not supported yet; supported "
                                         "is " +
                                         wrapper.text +
                                         (isLlava     ? ", mistral and qwen2"
                                          : isMistral ? " and ministral3"
                                                      : ""));
    return std::nullopt;
  }
  if (isDecoderFamily(type))
    return readDecoder(type, json, path, diagnostics);
  const auto config = readLlama(json, type);
  if (!config)
    return std::nullopt;
  DecoderConfig result;
  result.decoder = decoderOf(*config);
  result.info = describeModel(*config);
  result.vocabSize = config->vocabSize;
  result.maxPositions = config->maxPositions;
  result.dtype = config->dtype;
  return result;
}

ModelInfo infoOf(const ModuleTree &tree, const ModelInfo &text,
                 const TowerNumbers &numbers, Stored stored) {
  std::map<std::string, const ParameterInfo *> known;
  for (const ParameterInfo &parameter : text.parameters) {
    known[moved(parameter.fqn)] = &parameter;
    for (const std::string &alias : parameter.aliases)
      known[moved(alias)] = &parameter;
  }
  return describeTree(
      tree,
      [&](const TreeParameter &parameter) {
        const auto of = known.find(parameter.fqn);
        return of == known.end() ? towerInit(tree, parameter, numbers)
                                 : of->second->init;
      },
      [stored](ParameterInfo &parameter) {
        parameter.stored = {storedName(stored, parameter.fqn)};
      });
}

} // namespace

bool accel::huggingface::isWrapper(const std::string &modelType) {
  return find(modelType) != nullptr;
}

std::vector<std::string> accel::huggingface::wrapperNames() {
  std::vector<std::string> names;
  for (const Wrapper &wrapper : wrappers)
    names.emplace_back(wrapper.modelType);
  return names;
}

std::optional<DecoderConfig>
accel::huggingface::readWrapped(const std::string &modelType,
                                ConfigReader &json, const std::string &path,
                                DiagnosticEngine &diagnostics) {
  const moduletree::Family &description = *moduletree::findFamily(modelType);
  if (!checkArchitecture(json, std::string(description.prefix) +
                                   "ForConditionalGeneration"))
    return std::nullopt;
  const Wrapper &wrapper = *find(modelType);
  auto config = readText(wrapper, json, path, diagnostics);
  if (!config || json.failed())
    return std::nullopt;
  auto tree = moduletree::instantiate(description, "", json, diagnostics, path);
  const std::optional<plan::DType> dtype = json.dtype();
  // transformers reads a 0 as its default.
  const auto range = [&](const char *key, double otherwise) {
    const double given = json.number(key, otherwise);
    return given == 0 ? 0.02 : given;
  };
  TowerNumbers numbers;
  numbers.range = range("vision_config.initializer_range", 0.02);
  numbers.factor = json.number("vision_config.initializer_factor", 1);
  // Of `visual` all is the tower's, whose own config says it.
  numbers.stddev = wrapper.stored == Stored::Llava
                       ? range("initializer_range",
                               range("text_config.initializer_range", 0.02))
                       : numbers.range;
  if (!tree || json.failed())
    return std::nullopt;
  tree->modelType = modelType;
  config->tower = readTower(modelType, json);
  if (json.failed())
    return std::nullopt;
  numbers.layers = std::max<int64_t>(
      1, std::count_if(tree->modules.begin(), tree->modules.end(),
                       [](const TreeModule &module) {
                         return module.className == "CLIPEncoderLayer";
                       }));
  config->info = infoOf(*tree, config->info, numbers, wrapper.stored);
  move(config->decoder);
  // Qwen2_5_VLTextModel.forward expands positions over samples, of three
  // numbers each, and cos and sin are made of all.
  config->decoder.positionsOfMask |= wrapper.stored != Stored::Llava;
  // Gemma3ForConditionalGeneration has no cap of its logits.
  config->decoder.logitSoftcap = 0;
  // A dtype of text_config holds for that part alone, and is that of the whole
  // in files that transformers writes.
  if (dtype)
    config->dtype = dtype;
  return config;
}

std::string accel::huggingface::besideText(const std::string &modelType) {
  return find(modelType)->beside;
}

int64_t accel::huggingface::numelBesideText(const ModelInfo &info) {
  int64_t numel = 0;
  for (const ParameterInfo &parameter : info.parameters)
    if (!parameter.fqn.starts_with(outer) && parameter.fqn != "lm_head.weight")
      numel += parameter.numel();
  return numel;
}

void accel::huggingface::nameTower(DecoderConfig &config,
                                   const Weights &weights) {
  const std::string now = "vision_tower.", before = now + "vision_model.";
  const bool old =
      std::any_of(weights.tensors.begin(), weights.tensors.end(),
                  [&](const auto &t) { return t.first.starts_with(before); });
  for (ParameterInfo &parameter : config.info.parameters)
    for (std::string &name : parameter.stored)
      if (old && name.starts_with(now))
        name.replace(0, now.size(), before);
}
