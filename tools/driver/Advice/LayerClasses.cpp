//===- LayerClasses.cpp - Classes that a wrap policy may name -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/LayerClasses.h"

#include <algorithm>
#include <map>

namespace accel {

tune::LayerClasses
layerClasses(const StepModel &model,
             const std::vector<huggingface::ModuleInfo> &modules) {
  tune::LayerClasses classes;
  std::map<std::string, std::string> classOf;
  for (const huggingface::ModuleInfo &m : modules)
    classOf[m.fqn] = m.className;
  auto add = [](std::vector<std::string> &to, const std::string &name) {
    if (!name.empty() && std::find(to.begin(), to.end(), name) == to.end())
      to.push_back(name);
  };
  for (const StepCall &call : model.calls) {
    if (!call.layer)
      continue;
    add(classes.layers, classOf[call.path]);
    std::map<std::string, int64_t> blocks;
    for (int p : call.parameters) {
      const std::string &fqn = model.parameters[p].fqn;
      if (fqn.compare(0, call.path.size() + 1, call.path + "."))
        continue;
      size_t dot = fqn.find('.', call.path.size() + 1);
      blocks[fqn.substr(0, dot)] += model.parameters[p].numel();
    }
    auto largest = std::max_element(
        blocks.begin(), blocks.end(),
        [](const auto &a, const auto &b) { return a.second < b.second; });
    if (largest != blocks.end())
      add(classes.blocks, classOf[largest->first]);
  }
  return classes;
}

} // namespace accel
