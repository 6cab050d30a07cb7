//===- AdapterConfig.cpp - Which modules an adapter means -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Job/AdapterConfig.h"
#include "frontends/Diagnostics/Regex.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_map>

using namespace accel;

/// Each expression is compiled once, though asked for every module.
static const Regex &compiled(const std::string &expression) {
  static thread_local std::unordered_map<std::string, Regex> known;
  if (known.size() > 256)
    known.clear();
  auto it = known.find(expression);
  if (it == known.end())
    // The reader refused what does not compile.
    it = known.emplace(expression, Regex::compile(expression).value_or(Regex()))
             .first;
  return it->second;
}

/// Python's re.match(rf"(.*\.)?({key})$", fqn).
static std::string patternOf(const std::string &key) {
  return "(.*\\.)?(" + key + ")";
}
static bool matchesPattern(const std::string &key, const std::string &fqn) {
  return compiled(patternOf(key)).matches(fqn);
}
static std::string insidePattern(const std::string &name) {
  return "^(|.*\\.)" + name + "($|\\.)";
}
static std::string layerPattern(const std::string &pattern) {
  return "^(?:|.*?\\.)(?:" + pattern + ")\\.(\\d+)\\.";
}

std::optional<std::string> AdapterConfig::slowExpression() const {
  std::vector<std::pair<std::string, std::string>> used; // written, matched
  for (const ModuleNames *names : {&target, &exclude})
    if (names->regex)
      used.emplace_back(*names->regex, *names->regex);
  for (const auto &[key, value] : rankPattern)
    used.emplace_back(key, patternOf(key));
  for (const auto &[key, value] : alphaPattern)
    used.emplace_back(key, patternOf(key));
  for (const std::string &name : modulesToSave)
    used.emplace_back(name, insidePattern(name));
  for (const std::string &pattern : layersPattern)
    used.emplace_back(pattern, layerPattern(pattern));
  for (const auto &[written, matched] : used)
    if (compiled(matched).gaveUp())
      return written;
  return std::nullopt;
}

bool ModuleNames::matches(const std::string &fqn) const {
  if (regex)
    return compiled(*regex).matches(fqn);
  return std::any_of(names.begin(), names.end(), [&](const std::string &name) {
    return fqn == name || fqn.ends_with("." + name);
  });
}

Location AdapterConfig::place(const std::string &key) const {
  auto it = places.find(key);
  return it == places.end() ? Location{file, 1, 1} : it->second;
}

int64_t AdapterConfig::rankOf(const std::string &fqn) const {
  for (const auto &[key, value] : rankPattern)
    if (matchesPattern(key, fqn))
      return value;
  return rank;
}

double AdapterConfig::scaleOf(const std::string &fqn) const {
  double own = alpha, r = static_cast<double>(rankOf(fqn));
  for (const auto &[key, value] : alphaPattern)
    if (matchesPattern(key, fqn)) {
      own = value;
      break;
    }
  return own / (rankStabilized ? std::sqrt(r) : r);
}

/// The number after the first dotted word, or after one of `patterns`.
static std::optional<int64_t>
layerOf(const std::string &fqn, const std::vector<std::string> &patterns) {
  std::vector<std::string> expressions;
  for (const std::string &pattern : patterns)
    expressions.push_back(layerPattern(pattern));
  if (patterns.empty())
    expressions.push_back("^.*?\\.[^.]*\\.(\\d+)\\.");
  for (const std::string &expression : expressions)
    if (auto digits = compiled(expression).lastGroupIn(fqn)) {
      if (digits->size() > 9)
        return std::nullopt;
      return std::stoll(*digits);
    }
  return std::nullopt;
}

bool AdapterConfig::targets(const std::string &fqn, bool linear,
                            bool outputEmbedding) const {
  if (exclude.matches(fqn))
    return false;
  for (const std::string &name : modulesToSave)
    if (compiled(insidePattern(name)).isIn(fqn))
      return false;
  if (allLinear)
    return linear && !outputEmbedding;
  if (!target.matches(fqn))
    return false;
  // PEFT asks for a layer where names are listed, not with an expression.
  if (target.regex || !layers || layers->empty() ||
      std::find(target.names.begin(), target.names.end(), fqn) !=
          target.names.end())
    return true;
  std::optional<int64_t> layer = layerOf(fqn, layersPattern);
  return layer &&
         std::find(layers->begin(), layers->end(), *layer) != layers->end();
}

bool AdapterConfig::saves(const std::string &fqn) const {
  return std::any_of(
      modulesToSave.begin(), modulesToSave.end(),
      [&](const std::string &name) { return fqn.ends_with(name); });
}

std::string AdapterConfig::modelClass() const {
  for (auto [type, name] :
       {std::pair("CAUSAL_LM", "PeftModelForCausalLM"),
        {"SEQ_CLS", "PeftModelForSequenceClassification"},
        {"SEQ_2_SEQ_LM", "PeftModelForSeq2SeqLM"},
        {"TOKEN_CLS", "PeftModelForTokenClassification"},
        {"QUESTION_ANS", "PeftModelForQuestionAnswering"},
        {"FEATURE_EXTRACTION", "PeftModelForFeatureExtraction"}})
    if (taskType == type)
      return name;
  return "PeftModel";
}

std::string accel::adapterConfigText(const AdapterConfig &config,
                                     const std::string &baseModel) {
  using Json = nlohmann::ordered_json;
  auto whole = [](double number) {
    return number == std::floor(number) && std::fabs(number) < 1e15
               ? Json(static_cast<int64_t>(number))
               : Json(number);
  };
  auto names = [](const ModuleNames &modules) {
    return modules.regex           ? Json(*modules.regex)
           : modules.names.empty() ? Json(nullptr)
                                   : Json(modules.names);
  };
  auto list = [](const std::vector<std::string> &values) {
    return values.empty() ? Json(nullptr) : Json(values);
  };
  Json ranks = Json::object(), alphas = Json::object();
  for (const auto &[key, value] : config.rankPattern)
    ranks[key] = value;
  for (const auto &[key, value] : config.alphaPattern)
    alphas[key] = whole(value);
  Json init = config.init == AdapterConfig::Init::Gaussian
                  ? Json("gaussian")
                  : Json(config.init == AdapterConfig::Init::Kaiming);
  const char *bias = config.bias == AdapterConfig::Bias::None  ? "none"
                     : config.bias == AdapterConfig::Bias::All ? "all"
                                                               : "lora_only";
  Json json = {{"alpha_pattern", alphas},
               {"base_model_name_or_path", baseModel},
               {"bias", bias},
               {"exclude_modules", names(config.exclude)},
               {"fan_in_fan_out", config.fanInFanOut},
               {"inference_mode", true},
               {"init_lora_weights", init},
               {"layers_pattern", list(config.layersPattern)},
               {"layers_to_transform",
                config.layers ? Json(*config.layers) : Json(nullptr)},
               {"lora_alpha", whole(config.alpha)},
               {"lora_dropout", config.dropout},
               {"modules_to_save", list(config.modulesToSave)},
               {"peft_type", "LORA"},
               {"r", config.rank},
               {"rank_pattern", ranks},
               {"target_modules",
                config.allLinear ? Json("all-linear") : names(config.target)},
               {"task_type", config.taskType.empty() ? Json(nullptr)
                                                     : Json(config.taskType)},
               {"use_dora", config.magnitude},
               {"use_rslora", config.rankStabilized}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
