//===- AdapterReader.cpp - Reading a LoRA configuration -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/Regex.h"
#include "frontends/Job/AdapterConfig.h"
#include "frontends/Job/Fields.h"

#include <algorithm>
#include <filesystem>

using namespace accel;

namespace {

constexpr int64_t maxRank = 1 << 16;
constexpr size_t maxExpression = 2000; // the compiler of regexes recurses
constexpr uint64_t maxBytes = 16'000'000;

/// Keys of PEFT's LoraConfig that change nothing here.
const std::vector<std::string> silentKeys = {
    "auto_mapping",      "inference_mode", "megatron_core", "peft_version",
    "qalora_group_size", "revision",       "runtime_config"};
/// Keys that ask for something else than LoRA as it is done here, unless they
/// are null, false or empty.
const std::vector<std::string> otherKeys = {"alora_invocation_tokens",
                                            "arrow_config",
                                            "corda_config",
                                            "ensure_weight_tying",
                                            "eva_config",
                                            "kasa_config",
                                            "layer_replication",
                                            "loftq_config",
                                            "lora_bias",
                                            "lora_ga_config",
                                            "megatron_config",
                                            "monteclora_config",
                                            "target_parameters",
                                            "trainable_token_indices",
                                            "use_bdlora",
                                            "use_qalora",
                                            "velora_config"};

bool saysNothing(const yaml::Node &node) {
  switch (node.kind) {
  case yaml::Kind::Null:
    return true;
  case yaml::Kind::Bool:
    return !node.boolean;
  case yaml::Kind::Sequence:
    return node.items.empty();
  case yaml::Kind::Mapping:
    return node.entries.empty();
  default:
    return false;
  }
}

class Reader {
public:
  Reader(const std::string &file, const yaml::Node &node,
         const std::string &path, bool strict, bool forPlanning,
         DiagnosticEngine &engine)
      : node(node), fields(file, node, path, engine), strict(strict),
        forPlanning(forPlanning) {
    config.file = file;
    config.places[""] = {file, node.range.begin.line, node.range.begin.column};
    for (const yaml::Entry &entry : node.entries)
      if (entry.key->isString())
        config.places[entry.key->text] = {file, entry.at.begin.line,
                                          entry.at.begin.column};
  }

  std::optional<AdapterConfig> run() {
    checkKeys();
    checkKind();
    readNumbers();
    readModules();
    readLayers();
    readPattern("rank_pattern", config.rankPattern);
    readPattern("alpha_pattern", config.alphaPattern);
    if (failed)
      return std::nullopt;
    return std::move(config);
  }

private:
  const yaml::Node *find(const char *key) const {
    const yaml::Entry *entry = fields.find(key);
    return entry && !entry->value->isNull() ? entry->value : nullptr;
  }
  void error(const char *key, const std::string &message,
             const std::string &hint = "") {
    fields.error("invalid-value", key, message, hint);
    failed = true;
  }
  void unsupported(const char *key, const std::string &message,
                   const std::string &hint = "") {
    if (forPlanning)
      fields.error(notSupportedCode, key, message, hint);
    failed = true;
  }
  std::string named(const char *key) const { return fields.keyPath(key); }

  void checkKeys() {
    std::vector<std::string> known = {"r",
                                      "lora_alpha",
                                      "lora_dropout",
                                      "target_modules",
                                      "exclude_modules",
                                      "bias",
                                      "use_rslora",
                                      "use_dora",
                                      "modules_to_save",
                                      "init_lora_weights",
                                      "layers_to_transform",
                                      "layers_pattern",
                                      "rank_pattern",
                                      "alpha_pattern",
                                      "fan_in_fan_out",
                                      "task_type",
                                      "peft_type",
                                      "base_model_name_or_path"};
    known.insert(known.end(), otherKeys.begin(), otherKeys.end());
    if (!strict) // what PEFT writes
      known.insert(known.end(), silentKeys.begin(), silentKeys.end());
    for (const yaml::Entry &entry : node.entries) {
      const yaml::Node &key = *entry.key;
      std::string name = key.isString() ? key.text : "";
      if (std::find(known.begin(), known.end(), name) != known.end())
        continue;
      if (!strict && key.isString()) {
        fields.report(Severity::Warning, "unknown-key", name.c_str(),
                      "'" + printable(name) +
                          "' is no key of LoRA that is known; it is ignored, "
                          "as PEFT does",
                      didYouMean(name, known), true);
        continue;
      }
      failed = true;
    }
    if (strict && failed)
      fields.checkKeys(known);
    for (const std::string &key : otherKeys)
      if (const yaml::Node *value = find(key.c_str()))
        if (!saysNothing(*value))
          unsupported(key.c_str(), "'" + key + "' is not supported yet");
  }

  void checkKind() {
    const yaml::Node *kind = find("peft_type");
    if (!kind) {
      if (!strict)
        fields.errorHere("missing-key", "peft_type is missing",
                         "an adapter_config.json of LoRA has \"peft_type\": "
                         "\"LORA\"");
      failed |= !strict;
      return;
    }
    if (!kind->isString())
      error("peft_type", "peft_type must be a string, this is " +
                             std::string(yaml::describe(kind->kind)));
    else if (kind->text != "LORA")
      unsupported("peft_type", "adapters of type '" + printable(kind->text) +
                                   "' are not supported yet; LORA is");
  }

  std::optional<std::string> text(const char *key) {
    const yaml::Node *value = find(key);
    if (!value)
      return std::nullopt;
    if (value->isString() && value->text.find('\0') == std::string::npos)
      return value->text;
    error(key, named(key) + " must be a string, this is " +
                   yaml::describe(value->kind));
    return std::nullopt;
  }
  void flag(const char *key, bool &result) {
    if (const yaml::Node *value = find(key)) {
      if (value->kind == yaml::Kind::Bool)
        result = value->boolean;
      else
        error(key, named(key) + " must be true or false, this is " +
                       yaml::shortText(*value));
    }
  }
  bool integer(const char *key, const yaml::Node &value, int64_t least,
               int64_t &result) {
    if (value.kind == yaml::Kind::Int && !value.huge &&
        value.integer >= least && value.integer <= maxRank) {
      result = value.integer;
      return true;
    }
    error(key, named(key) + " must be an integer from " +
                   std::to_string(least) + " to " + std::to_string(maxRank) +
                   ", this is " + yaml::shortText(value));
    return false;
  }
  bool number(const char *key, const yaml::Node &value, double &result) {
    bool numeric =
        value.kind == yaml::Kind::Int || value.kind == yaml::Kind::Float;
    if (numeric && std::abs(value.number) <= 1e9) {
      result = value.number;
      return true;
    }
    error(key, named(key) + " must be a number of at most 1e9, this is " +
                   yaml::shortText(value));
    return false;
  }

  void readNumbers() {
    if (const yaml::Node *value = find("r"))
      integer("r", *value, 1, config.rank);
    if (const yaml::Node *value = find("lora_alpha"))
      number("lora_alpha", *value, config.alpha);
    if (const yaml::Node *value = find("lora_dropout");
        value && number("lora_dropout", *value, config.dropout) &&
        !(config.dropout >= 0 && config.dropout < 1))
      error("lora_dropout", named("lora_dropout") +
                                " must be at least 0 and below 1, this is " +
                                yaml::shortText(*value));
    flag("use_rslora", config.rankStabilized);
    flag("use_dora", config.magnitude);
    flag("fan_in_fan_out", config.fanInFanOut);
    if (std::optional<std::string> bias = text("bias")) {
      if (*bias == "all")
        config.bias = AdapterConfig::Bias::All;
      else if (*bias == "lora_only")
        config.bias = AdapterConfig::Bias::LoraOnly;
      else if (*bias != "none")
        error("bias",
              named("bias") +
                  " must be none, all or lora_only, this "
                  "is '" +
                  printable(*bias) + "'",
              didYouMean(*bias, {"none", "all", "lora_only"}));
    }
    config.taskType = text("task_type").value_or("");
    config.baseModel = text("base_model_name_or_path").value_or("");
    readInit();
  }

  void readInit() {
    const yaml::Node *value = find("init_lora_weights");
    if (!value)
      return;
    std::string name = value->isString() ? value->text : "";
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (value->kind == yaml::Kind::Bool)
      config.init = value->boolean ? AdapterConfig::Init::Kaiming
                                   : AdapterConfig::Init::Random;
    else if (name == "gaussian")
      config.init = AdapterConfig::Init::Gaussian;
    else if (value->isString())
      unsupported("init_lora_weights",
                  "first values '" + printable(value->text) +
                      "' are not supported yet",
                  "true, false and gaussian are");
    else
      error("init_lora_weights", named("init_lora_weights") +
                                     " must be true, false or a name, "
                                     "this is " +
                                     yaml::describe(value->kind));
  }

  /// A regular expression that compiles within bounds.
  bool checkExpression(const char *key, const std::string &expression) {
    if (expression.size() > maxExpression) {
      error(key, named(key) + " holds an expression of more than 2000 bytes");
      return false;
    }
    // By itself too: "a)(b" has its parentheses in pairs in a group alone.
    if (Regex::compile(expression) &&
        Regex::compile("(.*\\.)?(" + expression + ")"))
      return true;
    error(key, "\"" + printable(expression) + "\" is not a regex");
    return false;
  }

  bool strings(const char *key, const yaml::Node &value,
               std::vector<std::string> &result) {
    for (const yaml::Node *item : value.items) {
      if (!item->isString() || item->text.empty()) {
        error(key, named(key) + " must list names, one is " +
                       yaml::describe(item->kind));
        return false;
      }
      result.push_back(item->text);
    }
    return true;
  }

  void readNames(const char *key, ModuleNames &names) {
    const yaml::Node *value = find(key);
    if (!value)
      return;
    if (value->isSequence())
      strings(key, *value, names.names);
    else if (!value->isString())
      error(key, named(key) + " must be a list of names or a regex, this is " +
                     yaml::describe(value->kind));
    else if (checkExpression(key, value->text))
      names.regex = value->text;
  }

  void readModules() {
    const yaml::Node *target = find("target_modules");
    if (!target || (target->isSequence() && target->items.empty())) {
      error("target_modules",
            "target_modules is missing or empty: nothing says which modules "
            "get an "
            "adapter",
            "list names such as [q_proj, v_proj], or write all-linear");
    } else {
      std::string word = target->isString() ? target->text : "";
      std::transform(word.begin(), word.end(), word.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      config.allLinear = word == "all-linear";
      if (!config.allLinear)
        readNames("target_modules", config.target);
    }
    readNames("exclude_modules", config.exclude);
    const yaml::Node *saved = find("modules_to_save");
    if (!saved)
      return;
    if (!saved->isSequence())
      return error("modules_to_save", named("modules_to_save") +
                                          " must be a list of names, this is " +
                                          yaml::describe(saved->kind));
    strings("modules_to_save", *saved, config.modulesToSave);
    for (const std::string &name : config.modulesToSave)
      checkExpression("modules_to_save", name);
  }

  void readLayers() {
    if (const yaml::Node *value = find("layers_to_transform")) {
      config.layers.emplace();
      std::vector<const yaml::Node *> items = {value};
      if (value->isSequence())
        items = value->items;
      for (const yaml::Node *item : items)
        if (!integer("layers_to_transform", *item, 0,
                     config.layers->emplace_back()))
          break;
    }
    if (const yaml::Node *value = find("layers_pattern")) {
      if (value->isString() && !value->text.empty())
        config.layersPattern = {value->text};
      else if (value->isSequence())
        strings("layers_pattern", *value, config.layersPattern);
      else if (!value->isString())
        error("layers_pattern",
              named("layers_pattern") + " must be a name or a list of names");
      for (const std::string &pattern : config.layersPattern)
        checkExpression("layers_pattern", pattern);
    }
    bool listed = config.layers && !config.layers->empty();
    if (listed && (config.target.regex || config.allLinear))
      error("layers_to_transform",
            "layers_to_transform goes with a list of target_modules alone, as "
            "in PEFT",
            "say the layers in the regex");
    if (!config.layersPattern.empty() && !listed)
      error("layers_pattern", "layers_pattern needs layers_to_transform");
  }

  template <typename T>
  void readPattern(const char *key, AdapterConfig::Pattern<T> &pattern) {
    const yaml::Node *value = find(key);
    if (!value)
      return;
    if (!value->isMapping())
      return error(key, named(key) + " must map names to numbers, this is " +
                            yaml::describe(value->kind));
    for (const yaml::Entry &entry : value->entries) {
      if (!entry.key->isString() || !checkExpression(key, entry.key->text))
        return error(key, named(key) + " has a key that is no name");
      T &result = pattern.emplace_back(entry.key->text, T()).second;
      bool good = false;
      if constexpr (std::is_same_v<T, double>)
        good = number(key, *entry.value, result);
      else
        good = integer(key, *entry.value, 1, result);
      if (!good)
        return;
    }
  }

  const yaml::Node &node;
  Fields fields;
  bool strict, forPlanning, failed = false;
  AdapterConfig config;
};

} // namespace

std::optional<AdapterConfig> accel::readAdapter(const std::string &file,
                                                const yaml::Node &node,
                                                const std::string &path,
                                                bool strict, bool forPlanning,
                                                DiagnosticEngine &engine) {
  return Reader(file, node, path, strict, forPlanning, engine).run();
}

std::optional<AdapterConfig>
accel::parseAdapterConfig(const std::string &text, const std::string &path,
                          DiagnosticEngine &engine) {
  std::unique_ptr<yaml::Document> document =
      yaml::parseText(path, text, engine);
  if (!document)
    return std::nullopt;
  if (!document->root() || !document->root()->isMapping()) {
    engine.error("invalid-value", path,
                 "an adapter's configuration must be an "
                 "object of keys and values");
    return std::nullopt;
  }
  return readAdapter(path, *document->root(), "", /*strict=*/false,
                     /*forPlanning=*/true, engine);
}

std::optional<AdapterConfig>
accel::readAdapterConfig(const std::string &path, DiagnosticEngine &engine) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::string file = path, text, error;
  if (fs::is_directory(path, ignored))
    file = (fs::path(path) / "adapter_config.json").string();
  if (!yaml::readWholeFile(file, maxBytes, text, error)) {
    engine.error("file-not-found", file,
                 "the adapter's configuration cannot be read: " + error);
    return std::nullopt;
  }
  return parseAdapterConfig(text, file, engine);
}
