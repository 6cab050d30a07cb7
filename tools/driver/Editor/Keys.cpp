//===- Keys.cpp - What can be written in a place --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Editor/Keys.h"

#include "frontends/Schema/Schema.h"

#include <algorithm>
#include <set>

namespace accel {
namespace {

using schema::Json;

/// A job.yaml has a `model` or an `accelerate` (isJobFile), SageMaker its own
/// keys.
struct FileKind {
  bool job = false, sagemaker = false;
};

FileKind kindOf(std::string_view text) {
  FileKind kind;
  const std::string all = "\n" + std::string(text);
  kind.job = all.find("\nmodel:") != std::string::npos ||
             all.find("\naccelerate:") != std::string::npos;
  kind.sagemaker =
      all.find("\ncompute_environment: AMAZON_SAGEMAKER") != std::string::npos;
  return kind;
}

class Schemas {
public:
  Schemas()
      : accelerate(schema::accelerateSchema(newestAccelerate)),
        job(schema::jobSchema(newestAccelerate)) {}

  /// The alternatives that hold at a path.
  std::vector<const Json *> at(const std::vector<std::string> &path,
                               FileKind kind) const {
    const Json &root = kind.job ? job : accelerate;
    std::vector<const Json *> nodes;
    open(root, root, kind, nodes);
    for (const std::string &key : path) {
      std::vector<const Json *> under;
      for (const Json *node : nodes)
        if (node->contains("properties") && (*node)["properties"].contains(key))
          open((*node)["properties"][key], root, kind, under);
      nodes = std::move(under);
    }
    return nodes;
  }

private:
  static void open(const Json &node, const Json &root, FileKind kind,
                   std::vector<const Json *> &out) {
    out.push_back(&node);
    if (const auto ref = node.find("$ref"); ref != node.end())
      open(root.at(Json::json_pointer(ref->get<std::string>().substr(1))), root,
           kind, out);
    for (const char *word : {"anyOf", "oneOf", "allOf"})
      if (const auto list = node.find(word); list != node.end())
        for (const Json &item : *list)
          open(item, root, kind, out);
    const char *branch = kind.sagemaker ? "then" : "else";
    if (const auto item = node.find(branch); item != node.end())
      open(*item, root, kind, out);
  }

  Json accelerate, job;
};

const Schemas &schemas() {
  static const Schemas all;
  return all;
}

/// What YAML reads as this value: text that it would take for a boolean is
/// quoted.
std::string asYaml(const Json &value) {
  if (!value.is_string())
    return value.dump();
  std::string text = value.get<std::string>(), lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const std::set<std::string> other = {"yes", "no",   "on",   "off", "true",
                                       "y",   "null", "true", "n",   "false"};
  return other.count(lower) ? "'" + text + "'" : text;
}

std::string helpOf(const Json &node) {
  const auto help = node.find("description");
  return help == node.end() ? "" : help->get<std::string>();
}

void addKeys(const Json &node, const Place &place, FileKind kind,
             std::vector<Choice> &choices) {
  const auto keys = node.find("properties");
  if (keys == node.end())
    return;
  for (const auto &[key, value] : keys->items()) {
    std::vector<std::string> path = place.sections;
    path.push_back(key);
    const std::vector<const Json *> under = schemas().at(path, kind);
    choices.push_back({key, helpOf(value),
                       std::any_of(under.begin(), under.end(), [](auto *node) {
                         return node->contains("properties");
                       })});
  }
}

void addValues(const Json &node, std::vector<Choice> &choices) {
  if (const auto values = node.find("enum"); values != node.end()) {
    const auto help = node.find("enumDescriptions");
    for (size_t i = 0; i < values->size(); ++i)
      choices.push_back(
          {asYaml((*values)[i]),
           help != node.end() ? (*help)[i].get<std::string>() : ""});
  }
  if (const auto value = node.find("const"); value != node.end())
    choices.push_back({asYaml(*value), helpOf(node)});
  if (node.value("type", Json()) == "boolean")
    for (const char *value : {"true", "false"})
      choices.push_back({value, ""});
}

std::vector<std::string> fullPath(const Place &place) {
  std::vector<std::string> path = place.sections;
  path.push_back(place.key);
  return path;
}

} // namespace

std::vector<Choice> choicesAt(const Place &place, std::string_view text) {
  const FileKind kind = kindOf(text);
  std::vector<Choice> choices;
  for (const Json *node :
       schemas().at(place.inValue ? fullPath(place) : place.sections, kind)) {
    if (place.inValue)
      addValues(*node, choices);
    else
      addKeys(*node, place, kind, choices);
  }
  std::set<std::string> seen;
  choices.erase(std::remove_if(choices.begin(), choices.end(),
                               [&](const Choice &choice) {
                                 return !seen.insert(choice.text).second;
                               }),
                choices.end());
  return choices;
}

std::string descriptionOf(const Place &place, std::string_view text) {
  for (const Json *node : schemas().at(fullPath(place), kindOf(text)))
    if (std::string help = helpOf(*node); !help.empty())
      return help;
  return "";
}

} // namespace accel
