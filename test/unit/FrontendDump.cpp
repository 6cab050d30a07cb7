//===- FrontendDump.cpp - What the text frontends understood --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// For comparisons with Accelerate and PyYAML in test/parity:
//   frontend-dump FILES...          one JSON object per accelerate file
//   frontend-dump --keys VERSION    one JSON object per key of that accelerate
//   frontend-dump --env VERSION FILES...   what launch would set, one JSON
//                                   object per file
//   frontend-dump --yaml FILES...   one JSON string per file (Python's str() of
//                                   the document), or null if it is refused
//   frontend-dump --values LIST     the value of each text in a JSON list of
//                                   [file name, text], with types; or null
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Job/JobConfig.h"
#include "test/unit/DescribeAccelerate.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace accel;
static int printKeys(const char *text) {
  std::optional<AccelerateVersion> version = parseAccelerateVersion(text);
  if (!version)
    return 1;
  for (const KeyInfo &key : allKeys()) {
    if (!key.in(*version))
      continue;
    Json line;
    line["section"] = key.section;
    line["name"] = key.name;
    line["type"] = toString(key.type);
    line["choices"] =
        key.choices ? Json(valuesOf(*key.choices, *version)) : Json(nullptr);
    const DefaultValue *byDefault = key.defaultIn(*version);
    line["default"] = byDefault ? Json(byDefault->value) : Json(nullptr);
    line["owner"] =
        byDefault ? Json(toString(byDefault->owner)) : Json(nullptr);
    line["read"] = key.readIn(*version);
    line["misnomer"] = key.rules.instead != nullptr;
    line["nullable"] = key.rules.nullable;
    std::puts(line.dump().c_str());
  }
  return 0;
}

static int printEnvironments(const char *text, int count, char **files) {
  std::optional<AccelerateVersion> version = parseAccelerateVersion(text);
  if (!version)
    return 1;
  for (int i = 0; i < count; ++i) {
    DiagnosticEngine engine;
    auto document = yaml::parseFile(files[i], engine);
    Json line;
    LaunchEnvironment launch;
    if (document && document->root() && document->root()->isMapping())
      launch = simulateLaunch(*document->root(), *version);
    else
      launch.refused = "not a mapping";
    line["launcher"] = toString(launch.launcher);
    line["refused"] = launch.refused;
    line["variables"] = Json::object();
    line["when"] = Json::object();
    for (const EnvironmentVariable &v : launch.variables) {
      line["variables"][v.name] = v.value ? Json(*v.value) : Json(nullptr);
      if (!v.when.empty())
        line["when"][v.name] = v.when;
    }
    std::puts(
        line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return 0;
}

/// A value with its type: numbers as Python prints them, strings as code
/// points (half surrogate pairs have no UTF-8), sets sorted.
static Json typed(const yaml::Node &n) {
  auto list = [](const auto &from, auto make) {
    Json out = Json::array();
    for (const auto &element : from)
      out.push_back(make(element));
    return out;
  };
  auto pair = [](const yaml::Entry &e) {
    return Json::array({typed(*e.key), typed(*e.value)});
  };
  switch (n.kind) {
  case yaml::Kind::Null:
    return nullptr;
  case yaml::Kind::Bool:
    return n.boolean;
  case yaml::Kind::Int:
    return {{"int", yaml::pythonText(n)}};
  case yaml::Kind::Float:
    return {{"float", yaml::pythonText(n)}};
  case yaml::Kind::String: {
    std::string bytes;
    char hex[4];
    for (unsigned char c : n.text) {
      std::snprintf(hex, sizeof hex, "%02x", c);
      bytes += hex;
    }
    return {{"str", bytes}};
  }
  case yaml::Kind::Sequence:
    return {{"list", list(n.items, [](auto *item) { return typed(*item); })}};
  case yaml::Kind::Mapping:
    return {{"dict", list(n.entries, pair)}};
  case yaml::Kind::Other:
    break;
  }
  if (n.other == yaml::Other::Set) {
    std::vector<std::string> elements;
    for (const yaml::Entry &entry : n.entries)
      elements.push_back(typed(*entry.key).dump());
    std::sort(elements.begin(), elements.end());
    return {{"set", elements}};
  }
  if (n.other == yaml::Other::Pairs)
    return {{"list", list(n.entries,
                          [&](auto &e) { return Json{{"tuple", pair(e)}}; })}};
  return {{"other", n.python ? n.python->second : n.text}};
}

static int dumpValues(const char *path) {
  std::ifstream stream(path);
  for (const Json &item : Json::parse(stream)) {
    DiagnosticEngine engine;
    std::string text;
    for (const Json &byte : item[1]) // bytes need not be UTF-8
      text += static_cast<char>(byte.get<int>());
    auto document = yaml::parseText(item[0], text, engine);
    Json line = Json::object();
    if (document)
      line["value"] = document->root() ? typed(*document->root()) : Json();
    else
      line["error"] = engine.sorted()[0].message;
    std::puts(
        line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc >= 3 && !std::strcmp(argv[1], "--env"))
    return printEnvironments(argv[2], argc - 3, argv + 3);
  if (argc == 3 && !std::strcmp(argv[1], "--values"))
    return dumpValues(argv[2]);
  if (argc == 3 && !std::strcmp(argv[1], "--keys"))
    return printKeys(argv[2]);
  bool yamlOnly = argc > 1 && !std::strcmp(argv[1], "--yaml");
  for (int i = yamlOnly ? 2 : 1; i < argc; ++i) {
    DiagnosticEngine engine;
    Json line;
    if (yamlOnly) {
      auto document = yaml::parseFile(argv[i], engine);
      if (document)
        line = document->root() ? yaml::pythonText(*document->root()) : "None";
    } else {
      LoadOptions options;
      options.accelerate.forPlanning = false;
      LoadedConfig loaded = loadConfig(argv[i], options, engine);
      line["outcome"] = static_cast<int>(loaded.outcome);
      line["diagnostics"] = Json::parse(renderJson(engine));
      line["effective"] =
          loaded.job ? describe(loaded.job->accelerate) : Json(nullptr);
    }
    std::puts(
        line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return 0;
}
