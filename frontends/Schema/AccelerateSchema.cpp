//===- AccelerateSchema.cpp - The schema of an accelerate file ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Schema/Published.h"
#include "frontends/Schema/Schema.h"
#include "frontends/Yaml/Yaml.h"

using namespace accel;
using namespace accel::schema;

namespace {

const std::string fsdp = "fsdp_config";

/// Forms of strings that the table of keys does not know.
struct Form {
  const char *section, *key, *pattern;
};
constexpr Form forms[] = {
    // Accelerate splits at commas and keeps blanks.
    {"fsdp_config", "fsdp_transformer_layer_cls_to_wrap",
     "^[^\\s,]+(,[^\\s,]+)*$"},
    {"", "gpu_ids", "^(all|[^\\s,]+(,[^\\s,]+)*)$"},
};

Json fromYaml(const yaml::Node &node) {
  switch (node.kind) {
  case yaml::Kind::Bool:
    return node.boolean;
  case yaml::Kind::Int:
    return node.integer;
  case yaml::Kind::Float:
    return node.number;
  case yaml::Kind::Null:
    return nullptr;
  case yaml::Kind::Sequence: {
    Json list = Json::array();
    for (const yaml::Node *item : node.items)
      list.push_back(fromYaml(*item));
    return list;
  }
  default:
    return node.text;
  }
}

Json fromYaml(const char *text) {
  DiagnosticEngine ignored;
  auto document = yaml::parseText("default.yaml", text, ignored);
  return document && document->root() ? fromYaml(*document->root())
                                      : Json(nullptr);
}

/// A regex for one of `words` in any case.
std::string anyCase(const std::vector<std::string> &words) {
  std::string pattern = "^(";
  for (const std::string &word : words) {
    pattern += pattern.size() > 2 ? "|" : "";
    for (char c : word) {
      char low = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      char high = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      if (low != high)
        pattern += std::string("[") + low + high + "]";
      else
        pattern += c;
    }
  }
  return pattern + ")$";
}

/// What str_to_bool of accelerate/utils/environment.py reads.
Json booleanText() {
  return {{"type", "string"},
          {"pattern", anyCase({"y", "yes", "t", "true", "on", "1", "n", "no",
                               "f", "false", "off", "0"})}};
}

class Builder {
public:
  explicit Builder(AccelerateVersion version) : version(version) {}

  Json section(const SectionInfo &info) {
    Json properties = Json::object();
    Json result = {{"type", "object"}, {"description", info.description}};
    for (const KeyInfo &key : keysIn(info.name)) {
      if (!key.in(version))
        continue;
      Json schema = ofKey(key);
      properties[key.name] = schema;
      // Launch adds the prefix itself.
      std::string_view prefix = info.impliedPrefix, name = key.name;
      if (!prefix.empty() && name.starts_with(prefix))
        properties[std::string(name.substr(prefix.size()))] = schema;
    }
    result["properties"] = std::move(properties);
    result["additionalProperties"] = false;
    if (info.name == fsdp && version >= AccelerateVersion{1, 6})
      result["allOf"] = byFsdpVersion();
    return result;
  }

  /// The keys of a file, LOCAL_MACHINE or SageMaker.
  Json top(const SectionInfo &info) {
    Json result = section(info);
    result["required"] = {"distributed_type"};
    // num_processes may come from launch's own flag: lint only notes it.
    if (info.name != std::string(sagemakerSection))
      return result;
    result["required"] = {"distributed_type", "ec2_instance_type",
                          "iam_role_name"};
    return result;
  }

private:
  const AccelerateVersion version;

  Json ofKey(const KeyInfo &key) {
    Json result = {{"description", describe(key)}};
    Json forms = formsOf(key);
    if (key.rules.nullable)
      forms.push_back({{"type", "null"}});
    const DefaultValue *byDefault = key.defaultIn(version);
    Json value = byDefault ? fromYaml(byDefault->value) : Json(nullptr);
    // "auto" where a number is wanted.
    bool isWord = value.is_string() && (key.type == ValueType::Integer ||
                                        key.type == ValueType::Number);
    if (isWord)
      forms.push_back({{"const", value}});
    if (forms.size() == 1)
      result.update(forms[0]);
    else
      result["anyOf"] = forms;
    if (byDefault && !value.is_null())
      result["default"] = value;
    if (key.rules.instead)
      result["deprecated"] = true;
    return result;
  }

  std::string describe(const KeyInfo &key) const {
    std::string text = key.description;
    text += ".";
    if (const DefaultValue *value = key.defaultIn(version))
      text += std::string(" Default ") + value->value + " (" +
              toString(value->owner) + ").";
    if (key.since > oldestAccelerate)
      text += " Since accelerate " + toString(key.since) + ".";
    if (key.until <= newestAccelerate)
      text += " Until accelerate " + toString(key.until) + ".";
    if (!key.readIn(version) && !key.rules.instead)
      text += " `accelerate launch` does not read it from a file.";
    return text;
  }

  /// The forms of a value, any of which will do.
  Json formsOf(const KeyInfo &key) {
    Json list = Json::array();
    const bool nested = *key.section;
    switch (key.type) {
    case ValueType::String: {
      Json text = {{"type", "string"}};
      for (const Form &form : forms)
        if (key.section == std::string_view(form.section) &&
            key.name == std::string_view(form.key))
          text["pattern"] = form.pattern;
      list.push_back(text);
      break;
    }
    case ValueType::Boolean:
      list.push_back({{"type", "boolean"}});
      if (nested) { // an environment variable
        list.push_back(booleanText());
        list.push_back({{"enum", {0, 1}}});
      } else if (!key.readIn(version)) {
        list.push_back(booleanText()); // the questionnaire writes 'no'
      }
      // FSDP1 does not look at it, and the questionnaire stores names there.
      if (key.name == std::string_view("fsdp_reshard_after_forward"))
        if (const KeyInfo *names = findKey(fsdp, "fsdp_sharding_strategy"))
          for (Json &form : formsOf(*names))
            list.push_back(form);
      break;
    case ValueType::Integer: {
      Json number = {{"type", "integer"}};
      if (key.rules.minimum)
        number["minimum"] = *key.rules.minimum;
      if (key.name == std::string_view("main_process_port"))
        number["maximum"] = 65535;
      list.push_back(number);
      // int() of an environment variable; launch itself looks at the others.
      std::string_view name = key.name;
      if (key.section == fsdp || name.find("_dp_") != name.npos ||
          name.find("_tp_size") != name.npos)
        list.push_back({{"type", "string"},
                        {"pattern", "^\\s*[+-]?[0-9]+(_[0-9]+)*\\s*$"}});
      break;
    }
    case ValueType::Number:
      list.push_back({{"type", "number"}});
      break;
    case ValueType::Choice:
      addChoices(*key.choices, list);
      break;
    case ValueType::StringList:
      list.push_back({{"type", "array"}, {"items", {{"type", "string"}}}});
      break;
    case ValueType::BoolTriple:
      list.push_back({{"type", "array"},
                      {"items", {{"type", "boolean"}}},
                      {"minItems", 3},
                      {"maxItems", 3}});
      break;
    case ValueType::Mapping:
      if (findSection(key.name))
        list.push_back({{"$ref", std::string("#/$defs/") + key.name}});
      else
        list.push_back({{"type", "object"}});
      break;
    }
    return list;
  }

  void addChoices(const EnumInfo &choices, Json &list) {
    Json values = Json::array(), texts = Json::array();
    std::vector<std::string> words;
    for (const EnumValue &value : choices.values) {
      if (!value.in(version))
        continue;
      words.push_back(value.value);
      if (choices.integers)
        values.push_back(std::stoi(value.value));
      else
        values.push_back(value.value);
      texts.push_back(value.description);
    }
    // Editors show these beside the values.
    list.push_back({{"enum", values}, {"enumDescriptions", texts}});
    if (choices.integers) { // in quotes, for int()
      std::string any = anyCase(words);
      list.push_back(
          {{"type", "string"},
           {"pattern", "^\\s*" + any.substr(1, any.size() - 2) + "\\s*$"}});
    }
    if (choices.ignoreCase)
      list.push_back({{"type", "string"}, {"pattern", anyCase(words)}});
    if (choices.numbered) {
      Json numbers = Json::array();
      for (size_t i = 1; i <= words.size(); ++i) {
        numbers.push_back(i);
        numbers.push_back(std::to_string(i));
      }
      list.push_back({{"enum", numbers}});
    }
    if (choices.open)
      list.push_back({{"type", "string"}, {"minLength", 1}});
  }

  /// What FSDP 2 cannot read.
  Json byFsdpVersion() const {
    Json two = {{"enum", {2, "2"}}}, conditions = Json::array();
    Json boolean = {{"anyOf", Json::array({{{"type", "boolean"}},
                                           booleanText(),
                                           {{"enum", {0, 1}}}})}};
    Json state = {
        {"not",
         {{"anyOf",
           Json::array({{{"type", "string"},
                         {"pattern", anyCase({"LOCAL_STATE_DICT", "2"})}},
                        {{"const", 2}}})}}}};
    for (const char *name : {"fsdp_version", "version"}) {
      Json properties = Json::object();
      for (const char *key :
           {"fsdp_reshard_after_forward", "reshard_after_forward"})
        properties[key] = boolean;
      for (const char *key : {"fsdp_state_dict_type", "state_dict_type"})
        properties[key] = state;
      conditions.push_back(
          {{"if", {{"properties", {{name, two}}}, {"required", {name}}}},
           {"then", {{"properties", properties}}}});
    }
    return conditions;
  }
};

} // namespace

Json accel::schema::accelerateSchema(AccelerateVersion version) {
  Builder builder(version);
  Json result = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"$id", addressOf(SchemaKind::Accelerate, version)},
      {"title", "accelerate " + toString(version) + " configuration"},
      {"description", "What `accelerate config` writes and `accelerate launch` "
                      "reads"},
      {"type", "object"},
      {"if",
       {{"properties",
         {{"compute_environment", {{"const", "AMAZON_SAGEMAKER"}}}}},
        {"required", {"compute_environment"}}}},
      {"then", {{"$ref", "#/$defs/sagemaker"}}},
      {"else", {{"$ref", "#/$defs/local_machine"}}}};
  Json definitions = Json::object();
  for (const SectionInfo &info : allSections()) {
    if (!info.in(version))
      continue;
    std::string name = *info.name ? info.name : "local_machine";
    bool isTop = !*info.name || name == sagemakerSection;
    definitions[name] = isTop ? builder.top(info) : builder.section(info);
  }
  result["$defs"] = std::move(definitions);
  return result;
}
