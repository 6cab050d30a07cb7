//===- CallNames.cpp - What Python names while modules run ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/CallNames.h"

#include "passes/Cost/OpCost.h"
#include "passes/StepModel/SegmentOrder.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel {
namespace {

class Names {
public:
  Names(const SegmentGraph &graph, std::vector<Storage> &storages)
      : graph(graph), function(graph.function), storages(storages),
        path(function.instructions.size()) {}

  std::vector<std::vector<int>> run() {
    if (!graph.namesArguments)
      return std::vector<std::vector<int>>(path.size());
    findModules();
    for (int i = 0; i < count(); ++i) {
      nameArguments(i);
      if (const auto kernel = kernels.find(layerModule(i));
          !path[i].empty() && kernel != kernels.end())
        nameInAttention(i, kernel->second);
    }
    std::vector<std::vector<int>> result(path.size());
    for (auto [root, last] : until) {
      while (last > storages[root].lastForward &&
             (graph.view[last] || !graph.forward[last]))
        --last;
      if (last <= storages[root].lastForward)
        continue;
      storages[root].lastForward = last;
      result[last].push_back(root);
    }
    return result;
  }

private:
  int count() const { return static_cast<int>(path.size()); }

  /// "mlp." of an instruction in "mlp.down_proj.lora_A.".
  std::string layerModule(int i) const {
    return path[i].substr(0, path[i].find('.') + 1);
  }
  template <typename Visit>
  static void forEachModule(const std::string &of, Visit visit) {
    for (size_t dot = of.find('.'); dot != std::string::npos;
         dot = of.find('.', dot + 1))
      visit(of.substr(0, dot + 1));
  }

  void findModules() {
    for (int i = 0; i < count(); ++i) {
      const plan::Instruction &instr = function.instructions[i];
      const size_t layer = instr.where.find("*.");
      if (!graph.forward[i] || graph.view[i] || layer == std::string::npos)
        continue;
      path[i] = instr.where.substr(layer + 2) + ".";
      forEachModule(path[i],
                    [&](const std::string &module) { lastOf[module] = i; });
      if (opKind(instr) == OpKind::Attention &&
          !kernels.try_emplace(layerModule(i), i).second)
        severalKernels.insert(layerModule(i));
    }
    // A ring of ranks computes block by block.
    for (const std::string &module : severalKernels)
      kernels.erase(module);
  }

  /// The storage of `slot`, if the forward made it; else -1.
  int made(int slot) const {
    const int root = function.slots[slot].base;
    const Storage &storage = storages[root];
    return storage.owner == Owner::Own && storage.madeInForward ? root : -1;
  }
  void keep(int root, int last) {
    if (root >= 0)
      until[root] = std::max(until[root], last);
  }

  void nameArguments(int i) {
    forEachSlot(function.instructions[i], [&](int slot) {
      const int root = made(slot);
      // Of none: the layer's own, or what ranks exchange.
      if (root < 0 || path[storages[root].producer].empty())
        return;
      forEachModule(path[i], [&](const std::string &module) {
        if (!path[storages[root].producer].starts_with(module))
          keep(root, lastOf[module]);
      });
    });
  }

  void nameInAttention(int i, int kernel) {
    forEachSlot(function.instructions[i], [&](int slot) {
      const int root = made(slot);
      if (i == kernel)
        keep(root, lastOf[layerModule(i)]);
      else if (root >= 0 && i < kernel && path[i] == layerModule(i) &&
               !path[storages[root].producer].empty() &&
               path[storages[root].producer] != path[i])
        keep(root, kernel - 1);
    });
  }

  const SegmentGraph &graph;
  const plan::Function &function;
  std::vector<Storage> &storages;
  std::vector<std::string> path;      // by instruction, from the layer on
  std::map<std::string, int> lastOf;  // by module: its last instruction
  std::map<std::string, int> kernels; // by module: attention's
  std::set<std::string> severalKernels;
  std::map<int, int> until; // by storage
};

} // namespace

std::vector<std::vector<int>> extendToReturns(const SegmentGraph &graph,
                                              std::vector<Storage> &storages) {
  return Names(graph, storages).run();
}

} // namespace accel
