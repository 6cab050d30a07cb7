//===- ModuleTreeDump.cpp - Prints module trees as JSON -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
//   module-tree-dump [--architecture CLASS] [--families] PATH...
//
// One line for each path: the tree of a config.json, or what was reported. Read
// by test/parity/module_tree_cases.py.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/ModuleTree.h"

#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace accel;
using Json = nlohmann::ordered_json;

static Json name(const std::optional<std::string> &fqn) {
  return fqn ? Json(*fqn) : Json();
}

static Json toJson(const ModuleTree &tree) {
  Json modules = Json::array(), parameters = Json::array(),
       buffers = Json::array(), sliding = Json::array();
  for (const TreeModule &m : tree.modules)
    modules.push_back({m.fqn, m.className});
  for (const TreeParameter &p : tree.parameters)
    parameters.push_back(
        {p.fqn, p.shape, plan::toString(p.dtype),
         p.tiedTo < 0 ? Json() : Json(tree.parameters[size_t(p.tiedTo)].fqn)});
  for (const TreeBuffer &b : tree.buffers)
    buffers.push_back({b.fqn, b.shape, plan::toString(b.dtype)});
  for (Attention a : tree.attention)
    sliding.push_back(a == Attention::Sliding);
  return {{"architecture", tree.architecture},
          {"modules", modules},
          {"parameters", parameters},
          {"buffers", buffers},
          {"no_split", tree.noSplit},
          {"base", name(tree.base)},
          {"input", name(tree.inputEmbedding)},
          {"output", name(tree.outputEmbedding)},
          {"sliding", sliding},
          {"tp", tree.tensorParallelPlan},
          {"numel", tree.numel()}};
}

int main(int argc, char **argv) {
  ModuleTreeOptions options;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--families")) {
      for (const std::string &name : moduleTreeFamilies())
        std::cout << name << "\n";
      continue;
    }
    if (!std::strcmp(argv[i], "--architecture") && i + 1 < argc) {
      options.architecture = argv[++i];
      continue;
    }
    DiagnosticEngine engine;
    std::optional<ModuleTree> tree = readModuleTree(argv[i], options, engine);
    Json line = tree ? toJson(*tree) : Json::object();
    line["diagnostics"] = Json::parse(renderJson(engine));
    std::cout << line.dump() << "\n";
  }
  return 0;
}
