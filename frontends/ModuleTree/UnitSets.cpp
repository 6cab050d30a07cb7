//===- UnitSets.cpp - Which parameters form a unit --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/ModuleTree/UnitSets.h"
#include "frontends/Diagnostics/Regex.h"

#include "frontends/Diagnostics/Diagnostics.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

namespace accel::wrap {
namespace {

/// `fqn` is `ancestor` or inside it.
bool isInside(const std::string &fqn, const std::string &ancestor) {
  if (ancestor.empty() || fqn == ancestor)
    return true;
  return fqn.size() > ancestor.size() && fqn[ancestor.size()] == '.' &&
         fqn.compare(0, ancestor.size(), ancestor) == 0;
}

/// The solver's view of the module tree: children, and parameters by the
/// module that holds them.
class Tree {
public:
  explicit Tree(const Problem &problem) : problem(problem) {
    for (size_t i = 0; i < problem.modules.size(); ++i)
      index[problem.modules[i].fqn] = static_cast<int>(i);
    children.resize(problem.modules.size());
    own.resize(problem.modules.size());
    for (size_t i = 0; i < problem.modules.size(); ++i)
      if (!problem.modules[i].fqn.empty())
        children[parent(problem.modules[i].fqn)].push_back(static_cast<int>(i));
    for (size_t p = 0; p < problem.parameters.size(); ++p) {
      own[parent(problem.parameters[p].fqn)].push_back(static_cast<int>(p));
      for (const std::string &alias : problem.parameters[p].aliases)
        own[parent(alias)].push_back(static_cast<int>(p));
    }
  }

  int find(const std::string &fqn) const {
    auto it = index.find(fqn);
    return it == index.end() ? -1 : it->second;
  }
  /// Parameters of the subtree, each once, in order.
  std::vector<int> parametersOf(int module) const {
    std::vector<int> all;
    collect(module, all);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  int64_t numelOf(int module) const {
    int64_t n = 0;
    for (int p : parametersOf(module))
      n += problem.parameters[p].numel;
    return n;
  }
  /// Modules with children before parents, the root last.
  std::vector<int> bottomUp() const {
    std::vector<int> order;
    visit(0, order);
    return order;
  }

  std::vector<std::vector<int>> children, own;

private:
  int parent(std::string_view fqn) const {
    const size_t dot = fqn.rfind('.');
    auto it = index.find(dot == std::string_view::npos ? std::string_view()
                                                       : fqn.substr(0, dot));
    return it == index.end() ? 0 : it->second;
  }
  void collect(int module, std::vector<int> &all) const {
    all.insert(all.end(), own[module].begin(), own[module].end());
    for (int child : children[module])
      collect(child, all);
  }
  void visit(int module, std::vector<int> &order) const {
    for (int child : children[module])
      visit(child, order);
    order.push_back(module);
  }

  const Problem &problem;
  std::unordered_map<std::string_view, int> index; // names are the problem's
};

bool isContainer(const std::string &className) {
  return className == "ModuleList" || className == "ModuleDict";
}

class Solver {
public:
  explicit Solver(const Problem &problem)
      : problem(problem), tree(problem),
        taken(problem.parameters.size(), false) {}

  Solution run() {
    if (problem.modules.empty() || !problem.modules[0].fqn.empty())
      return fail("the model has no root module", "");
    if (!takeIgnored() || !resolveClasses())
      return solution;
    if (problem.fsdpVersion == 1)
      runVersion1();
    else
      runVersion2();
    if (!solution.error.empty())
      return solution;
    std::stable_sort(solution.units.begin(), solution.units.end(),
                     [](const UnitSet &a, const UnitSet &b) {
                       return a.parameters.front() < b.parameters.front();
                     });
    return solution;
  }

private:
  Solution fail(std::string error, std::string hint) {
    solution.error = std::move(error);
    solution.errorHint = std::move(hint);
    return solution;
  }

  /// Makes a unit of what the modules still have, if anything.
  void wrap(const std::vector<int> &modules, std::string why,
            bool keepGathered = false) {
    UnitSet unit;
    for (int m : modules) {
      unit.modules.push_back(problem.modules[m].fqn);
      for (int p : tree.parametersOf(m))
        if (!taken[p]) {
          taken[p] = true;
          unit.parameters.push_back(p);
        }
    }
    if (unit.parameters.empty())
      return;
    unit.name = unit.modules.front();
    std::sort(unit.parameters.begin(), unit.parameters.end());
    unit.keepGathered = keepGathered;
    unit.why = std::move(why);
    wrapped.insert(modules.begin(), modules.end());
    solution.units.push_back(std::move(unit));
  }

  bool takeIgnored() {
    if (problem.ignoredModules.empty())
      return true;
    std::string error;
    std::optional<Regex> regex = Regex::compile(problem.ignoredModules, &error);
    if (!regex) {
      fail("fsdp_ignored_modules is no regular expression: " + error,
           "it is matched against whole module names such as "
           "'model.layers.0'");
      return false;
    }
    size_t first = solution.units.size();
    for (size_t m = 0; m < problem.modules.size(); ++m)
      if (regex->matches(problem.modules[m].fqn)) {
        wrap({static_cast<int>(m)}, "matches fsdp_ignored_modules '" +
                                        problem.ignoredModules +
                                        "': replicated on every rank");
        ignoredMatched = true;
      }
    if (regex->gaveUp()) {
      fail("fsdp_ignored_modules '" + problem.ignoredModules +
               "' takes too many steps to match names of modules",
           Regex::slowHint);
      return false;
    }
    for (size_t u = first; u < solution.units.size(); ++u)
      solution.units[u].ignored = true;
    if (!ignoredMatched) {
      fail("fsdp_ignored_modules '" + problem.ignoredModules +
               "' matches no module of the model",
           "it is matched against whole module names such as "
           "'model.layers.0'");
      return false;
    }
    return true;
  }

  bool resolveClasses() {
    if (problem.policy != Policy::Transformer)
      return true;
    for (const std::string &name :
         problem.classes ? *problem.classes : problem.noSplit) {
      bool found =
          std::any_of(problem.modules.begin(), problem.modules.end(),
                      [&](const Module &m) { return m.className == name; });
      if (!found) {
        missingClass(name);
        return false;
      }
      classes.insert(name);
    }
    return true;
  }

  /// The model's own layer classes that occur more than once: what to wrap.
  std::string layerClasses() const {
    std::string text;
    for (const std::string &name : problem.noSplit)
      if (std::count_if(problem.modules.begin(), problem.modules.end(),
                        [&](const Module &m) { return m.className == name; }) >
          1)
        text += (text.empty() ? "" : ",") + name;
    return text;
  }

  void missingClass(const std::string &name) {
    // Nobody has written the class: what to write instead is known.
    if (const std::string layers = layerClasses();
        !problem.classes && !layers.empty()) {
      fail("could not find the transformer layer class '" + name +
               "' in the model, whose _no_split_modules names it",
           "write fsdp_transformer_layer_cls_to_wrap: " + layers);
      return;
    }
    std::string hint = "classes of this model with layers: ";
    std::set<std::string> listed;
    for (const Module &m : problem.modules)
      if (tree.own[tree.find(m.fqn)].empty() && !isContainer(m.className) &&
          !m.fqn.empty() && !tree.parametersOf(tree.find(m.fqn)).empty() &&
          listed.insert(m.className).second)
        hint += (listed.size() > 1 ? ", '" : "'") + m.className + "'";
    std::string nearest = didYouMean(
        name, std::vector<std::string>(listed.begin(), listed.end()));
    if (!nearest.empty())
      hint = nearest + " " + hint;
    fail("could not find the transformer layer class '" + name +
             "' in the model",
         listed.empty() ? "" : hint);
  }

  std::string classReason(int module) const {
    return "class " + problem.modules[module].className +
           (problem.classes ? " is in fsdp_transformer_layer_cls_to_wrap"
                            : " is in the model's _no_split_modules");
  }

  void runVersion2() {
    if (problem.fsdpVersion == 0) {
      for (int m : tree.bottomUp())
        if (std::find(problem.noSplit.begin(), problem.noSplit.end(),
                      problem.modules[m].className) != problem.noSplit.end())
          wrap({m}, "one gradient bucket per layer");
      carveEnds("one gradient bucket");
      wrap({0}, "what no other bucket holds", /*keepGathered=*/true);
      return;
    }
    for (int m : tree.bottomUp()) {
      if (m == 0 || !matchesVersion2(m))
        continue;
      const Module &module = problem.modules[m];
      if (isContainer(module.className)) {
        fail("SIZE_BASED_WRAP with fsdp_min_num_params " +
                 std::to_string(problem.minParams) + " matches the " +
                 module.className + " '" + module.fqn +
                 "', which FSDP2 cannot wrap: every rank would raise",
             "use TRANSFORMER_BASED_WRAP");
        return;
      }
      if (!problem.restInRoot && !problem.embeddingInside &&
          isInside(problem.inputEmbedding, module.fqn) &&
          module.fqn != problem.inputEmbedding && m != 0) {
        fail("wrapping '" + module.fqn + "' (" + module.className +
                 ") takes the input embedding, which Accelerate wraps by "
                 "itself afterwards: every rank would raise",
             "wrap the layer class alone");
        return;
      }
      wrap({m}, problem.policy == Policy::Size
                    ? std::to_string(tree.numelOf(m)) +
                          " parameters are more than fsdp_min_num_params"
                    : classReason(m));
    }
    if (problem.restInRoot) {
      wrap({0}, problem.rootWhy,
           /*keepGathered=*/!problem.rootReshards);
      return;
    }
    carveEnds(problem.endsWhy);
    wrap({0}, "what no other unit holds", /*keepGathered=*/true);
  }

  bool matchesVersion2(int m) const {
    switch (problem.policy) {
    case Policy::None:
      return false;
    case Policy::Transformer:
      return classes.count(problem.modules[m].className) != 0;
    case Policy::Size:
      return problem.minParams > 0 && tree.numelOf(m) > problem.minParams;
    }
    return false;
  }

  /// The parameter that is named `fqn`, or -1.
  int parameterNamed(const std::string &fqn) const {
    for (size_t p = 0; p < problem.parameters.size(); ++p) {
      const Parameter &one = problem.parameters[p];
      if (one.fqn == fqn || std::find(one.aliases.begin(), one.aliases.end(),
                                      fqn) != one.aliases.end())
        return static_cast<int>(p);
    }
    return -1;
  }

  /// The input embedding, and the tail: final norm and output embedding; one
  /// unit of all three where the embeddings' weights are tied (a head may have
  /// a bias beside it).
  void carveEnds(const std::string &why) {
    int input = findNamed(problem.inputEmbedding);
    int output = findNamed(problem.outputEmbedding);
    const int weight = parameterNamed(problem.inputEmbedding + ".weight");
    bool tied = input >= 0 && output >= 0 && weight >= 0 &&
                weight == parameterNamed(problem.outputEmbedding + ".weight");
    if (tied && problem.refuseTies) {
      fail("'" + problem.inputEmbedding + "' and '" + problem.outputEmbedding +
               "' share a weight, which accelerate 1.14 puts into two groups; "
               "torch 2.13 and later refuse that in every rank",
           "use accelerate 1.15, or write tie_word_embeddings: false into the "
           "model's config.json");
      return;
    }
    if (!tied && input >= 0 && !wrapped.count(input))
      wrap({input}, "input embedding: " + why);
    std::vector<int> tail;
    for (int m : {finalNorm(), tied ? input : -1, output})
      if (m >= 0 && !wrapped.count(m))
        tail.push_back(m);
    if (!tail.empty())
      wrap(tail,
           tied ? "final norm and tied embeddings: " + why
                : "final norm and output embedding: " + why,
           /*keepGathered=*/true);
  }

  int findNamed(const std::string &fqn) const {
    return fqn.empty() ? -1 : tree.find(fqn);
  }

  /// Last direct child of the base model whose class name contains "Norm".
  int finalNorm() const {
    int base = findNamed(problem.base), norm = -1;
    if (base >= 0)
      for (int child : tree.children[base])
        if (problem.modules[child].className.find("Norm") != std::string::npos)
          norm = child;
    return norm;
  }

  void runVersion1() {
    if (problem.policy == Policy::Size && problem.minParams > 0)
      for (int child : tree.children[0])
        wrapBySize(child);
    else if (problem.policy == Policy::Transformer)
      for (int m : tree.bottomUp()) {
        if (m != 0 && classes.count(problem.modules[m].className))
          wrap({m}, classReason(m));
        else if (m != 0 && isTrainedLeaf(m))
          wrap({m}, "PEFT's wrap policy: a module whose weight is trained");
      }
    wrap({0}, "the root: what no other unit holds", /*keepGathered=*/true);
  }

  bool isTrainedLeaf(int m) const {
    return problem.trainedLeaves && tree.children[m].empty() &&
           std::any_of(tree.own[m].begin(), tree.own[m].end(), [&](int p) {
             const Parameter &own = problem.parameters[p];
             return own.trainable && own.fqn.ends_with(".weight");
           });
  }

  /// torch's recursive wrapping with size_based_auto_wrap_policy; returns the
  /// parameters wrapped below and at `module`.
  int64_t wrapBySize(int module) {
    int64_t numel = 0;
    for (int p : tree.parametersOf(module))
      numel += taken[p] ? 0 : problem.parameters[p].numel;
    if (numel < problem.minParams)
      return 0;
    int64_t wrapped = 0;
    if (problem.modules[module].className != "MultiheadAttention")
      for (int child : tree.children[module])
        wrapped += wrapBySize(child);
    if (numel - wrapped < problem.minParams ||
        isContainer(problem.modules[module].className))
      return wrapped;
    wrap({module}, std::to_string(numel - wrapped) +
                       " parameters reach fsdp_min_num_params");
    return numel;
  }

  const Problem &problem;
  Tree tree;
  std::vector<bool> taken;
  std::set<int> wrapped; // modules that are units already
  std::set<std::string> classes;
  bool ignoredMatched = false;
  Solution solution;
};

} // namespace

/// The list that `unit` is one element of ("model.layers"), or "".
static std::string listOf(const UnitSet &unit) {
  size_t dot = unit.name.rfind('.');
  if (dot == std::string::npos || unit.ignored || unit.keepGathered ||
      unit.modules.size() != 1 ||
      unit.name.find_first_not_of("0123456789", dot + 1) != std::string::npos)
    return "";
  return unit.name.substr(0, dot);
}

/// Makes one unit of every `perUnit` neighbours of a list.
static void mergeLayers(std::vector<UnitSet> &units, int64_t perUnit) {
  std::vector<UnitSet> merged;
  std::string list; // of the last unit, while it may grow
  for (UnitSet &unit : units) {
    std::string own = listOf(unit);
    if (!own.empty() && own == list &&
        static_cast<int64_t>(merged.back().modules.size()) < perUnit) {
      UnitSet &last = merged.back();
      last.modules.push_back(unit.modules[0]);
      last.parameters.insert(last.parameters.end(), unit.parameters.begin(),
                             unit.parameters.end());
      continue;
    }
    list = own;
    merged.push_back(std::move(unit));
  }
  units = std::move(merged);
}

Solution solve(const Problem &problem) {
  Solution solution = Solver(problem).run();
  if (problem.layersPerUnit > 1 && solution.error.empty())
    mergeLayers(solution.units, problem.layersPerUnit);
  return solution;
}

std::string verify(const Problem &problem, const Solution &solution) {
  std::vector<int> uses(problem.parameters.size(), 0);
  for (const UnitSet &unit : solution.units) {
    if (unit.parameters.empty())
      return "unit '" + unit.name + "' is empty";
    for (int p : unit.parameters) {
      if (p < 0 || p >= static_cast<int>(uses.size()))
        return "unit '" + unit.name + "' names parameter " + std::to_string(p);
      ++uses[p];
    }
  }
  for (size_t p = 0; p < uses.size(); ++p)
    if (uses[p] != 1)
      return "parameter '" + problem.parameters[p].fqn + "' is in " +
             std::to_string(uses[p]) + " units";
  return "";
}

} // namespace accel::wrap
