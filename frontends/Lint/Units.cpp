//===- Units.cpp - What FSDP wraps, and what it leaves --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The units are those of passes/Wrap: fsdp2_prepare_model of accelerate 1.15,
// torch's auto-wrap for FSDP1.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Regex.h"
#include "frontends/Lint/UnitProblem.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel::lint {

bool isBelow(const std::string &fqn, const std::string &ancestor) {
  if (ancestor.empty())
    return !fqn.empty();
  return fqn.size() > ancestor.size() && fqn[ancestor.size()] == '.' &&
         fqn.starts_with(ancestor);
}

std::vector<std::string> wrapClasses(const Subject &subject) {
  const auto &written = subject.config->wrapClasses;
  return *written ? **written : subject.tree->noSplit;
}

wrap::Problem unitProblem(const Subject &subject) {
  const ModuleTree &tree = *subject.tree;
  const AccelerateConfig &config = *subject.config;
  wrap::Problem problem;
  for (const TreeModule &module : tree.modules)
    problem.modules.push_back({module.fqn, module.className});
  std::vector<size_t> index(tree.parameters.size());
  for (size_t i = 0; i < tree.parameters.size(); ++i) {
    const TreeParameter &p = tree.parameters[i];
    if (p.tiedTo < 0) {
      index[i] = problem.parameters.size();
      problem.parameters.push_back({p.fqn, {}, p.numel()});
    } else {
      index[i] = index[static_cast<size_t>(p.tiedTo)];
      problem.parameters[index[i]].aliases.push_back(p.fqn);
    }
  }
  problem.noSplit = tree.noSplit;
  problem.base = tree.base.value_or("");
  problem.inputEmbedding = tree.inputEmbedding.value_or("");
  problem.outputEmbedding = tree.outputEmbedding.value_or("");
  problem.fsdpVersion = subject.isFsdp2() ? 2 : 1;
  problem.policy =
      *config.wrapPolicy == WrapPolicy::Transformer ? wrap::Policy::Transformer
      : *config.wrapPolicy == WrapPolicy::Size      ? wrap::Policy::Size
                                                    : wrap::Policy::None;
  problem.classes = *config.wrapClasses;
  problem.minParams = *config.minNumParams;
  return problem;
}

namespace {

constexpr const char *classesKey = "fsdp_transformer_layer_cls_to_wrap";

class Units {
public:
  explicit Units(const Subject &subject)
      : subject(subject), tree(*subject.tree), config(*subject.config),
        classes(wrapClasses(subject)) {
    place = subject.in("fsdp_config", classesKey);
    if (!place || place.isNull())
      place = subject.in("fsdp_config", "fsdp_auto_wrap_policy");
    names = tree.classes();
    layers = findLayerClasses();
  }

  void run() {
    WrapPolicy policy = *config.wrapPolicy;
    if (policy == WrapPolicy::Transformer && !classesExist())
      return;
    if (!(subject.isFsdp2() ? shardable() : containersFree()))
      return;
    solution = wrap::solve(unitProblem(subject));
    if (!solution.error.empty())
      return;
    total = tree.numel();
    if (total == 0)
      return;
    if (policy == WrapPolicy::None)
      return reportWhole();
    collect();
    if (matched.empty())
      return reportNothing();
    if (policy == WrapPolicy::Transformer)
      reportEmptyClasses();
    reportTooBig();
    reportTooSmall();
    reportRoot();
    reportCheckpointing();
  }

private:
  const Subject &subject;
  const ModuleTree &tree;
  const AccelerateConfig &config;
  std::vector<std::string> classes, names;
  Field place;
  std::string layers; // of layerClasses()
  wrap::Solution solution;
  int64_t total = 0;
  /// Units that the policy made: module index and numbers of parameters.
  std::vector<std::pair<int, int64_t>> matched;
  std::set<int> rootParameters; // indices in ModuleTree::parameters

  std::string model() const { return tree.architecture; }
  std::string gathered(int64_t numel) const {
    return bytesText(static_cast<double>(numel) *
                     static_cast<double>(subject.gatheredBytes()));
  }
  bool isNoSplit(const std::string &name) const {
    return std::find(tree.noSplit.begin(), tree.noSplit.end(), name) !=
           tree.noSplit.end();
  }
  bool isWrapClass(const std::string &name) const {
    return std::find(classes.begin(), classes.end(), name) != classes.end();
  }
  /// The model's own layer classes that occur more than once: what to wrap.
  const std::string &layerClasses() const { return layers; }
  std::string findLayerClasses() const {
    std::map<std::string, int> count;
    for (const TreeModule &m : tree.modules)
      ++count[m.className];
    std::string text;
    for (const std::string &name : tree.noSplit)
      if (count[name] > 1)
        text += (text.empty() ? "" : ",") + name;
    return text;
  }
  std::string wrapHint() const {
    return layers.empty() ? ""
                          : "write " + std::string(classesKey) + ": " + layers;
  }

  /// Exact names, as get_module_class_from_name compares them.
  bool classesExist() {
    bool all = true;
    for (const std::string &name : classes) {
      // What parsing has reported already: blanks, lists, empty names.
      if (name.empty() || name.find_first_of(" \t\n[]'\"") != name.npos) {
        all = false;
        continue;
      }
      if (std::find(names.begin(), names.end(), name) != names.end())
        continue;
      all = false;
      std::string hint = nearest(name, names);
      // A class of another family: its own layers are what is meant.
      if (!layers.empty() && (hint.empty() || !isNoSplit(hint)))
        hint = hint.empty() || layers.find(hint) != layers.npos
                   ? "its layers are " + layers
                   : "did you mean '" + hint + "'? its layers are " + layers;
      else if (!hint.empty())
        hint = "did you mean '" + hint + "'?";
      subject.report(Severity::Error, "wrap-class-missing", place,
                     "no module of " + model() + " has the class '" +
                         printable(name) +
                         "'; every rank stops with \"Could not find the "
                         "transformer layer class\"",
                     hint);
    }
    return all;
  }

  /// FSDP1 gathers a unit in its forward, and a container's is never called.
  /// (Its size policy leaves containers out.)
  bool containersFree() {
    if (*config.wrapPolicy != WrapPolicy::Transformer || !config.sharded())
      return true;
    for (const char *name : {"ModuleList", "ModuleDict"})
      if (isWrapClass(name)) {
        subject.report(Severity::Error, "wrap-container", place,
                       "'" + std::string(name) +
                           "' is a container, whose forward nobody calls, so "
                           "that FSDP1 never gathers it; every rank stops with "
                           "a RuntimeError",
                       wrapHint());
        return false;
      }
    return true;
  }

  /// False if fully_shard raises for what the policy matches.
  bool shardable() {
    bool bySize = *config.wrapPolicy == WrapPolicy::Size;
    if (*config.wrapPolicy == WrapPolicy::None ||
        (bySize && *config.minNumParams <= 0))
      return true;
    bool carves = subject.version >= AccelerateVersion{1, 14};
    Field field =
        bySize ? subject.in("fsdp_config", "fsdp_min_num_params") : place;
    if (!field)
      field = place;
    // Containers come first: Accelerate goes bottom-up.
    for (bool containers : {true, false})
      for (size_t i = 1; i < tree.modules.size(); ++i) {
        const TreeModule &m = tree.modules[i];
        int64_t numel = bySize ? tree.numelOf(static_cast<int>(i)) : 0;
        if (bySize ? numel <= *config.minNumParams : !isWrapClass(m.className))
          continue;
        std::string what = "'" + m.className + "'";
        if (bySize)
          what = "SIZE_BASED_WRAP takes '" + m.fqn + "' (" + m.className +
                 ", " + countText(numel) + " parameters), which";
        bool container =
            m.className == "ModuleList" || m.className == "ModuleDict";
        std::string end = carves && !containers ? endInside(m.fqn) : "";
        if (containers ? !container : end.empty())
          continue;
        subject.report(
            Severity::Error,
            containers ? "wrap-container" : "wrap-takes-embedding", field,
            what + (containers
                        ? " is a container that FSDP2 cannot shard; every rank "
                          "stops with a ValueError"
                        : " holds '" + end +
                              "', which Accelerate shards by itself "
                              "afterwards; every rank stops with a TypeError"),
            bySize ? "write fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP"
                   : wrapHint());
        return false;
      }
    return true;
  }

  /// What Accelerate 1.14 shards by itself and lies inside of a module.
  std::string endInside(const std::string &fqn) const {
    for (const auto &end : {tree.inputEmbedding, tree.outputEmbedding,
                            std::optional(finalNorm())})
      if (end && !end->empty() && isBelow(*end, fqn) && !isUnitAlready(*end))
        return *end;
    return "";
  }
  /// Wrapped by the policy itself: Accelerate then leaves it.
  bool isUnitAlready(const std::string &end) const {
    int i = tree.find(end);
    return i >= 0 &&
           isWrapClass(tree.modules[static_cast<size_t>(i)].className);
  }
  std::string finalNorm() const {
    if (!tree.base)
      return "";
    int base = tree.find(*tree.base);
    std::string found;
    for (const TreeModule &m : tree.modules)
      if (m.parent == base && m.parent >= 0 &&
          m.className.find("Norm") != std::string::npos)
        found = m.fqn;
    return found;
  }

  void collect() {
    std::vector<int> original; // of the distinct parameters, as in the problem
    for (size_t i = 0; i < tree.parameters.size(); ++i)
      if (tree.parameters[i].tiedTo < 0)
        original.push_back(static_cast<int>(i));
    bool bySize = *config.wrapPolicy == WrapPolicy::Size;
    for (const wrap::UnitSet &unit : solution.units) {
      int module = tree.find(unit.name);
      int64_t numel = 0;
      for (int p : unit.parameters)
        numel += tree.parameters[static_cast<size_t>(
                                     original[static_cast<size_t>(p)])]
                     .numel();
      if (unit.name.empty())
        for (int p : unit.parameters)
          rootParameters.insert(original[static_cast<size_t>(p)]);
      else if (unit.modules.size() == 1 &&
               (bySize
                    ? numel >= *config.minNumParams
                    : isWrapClass(
                          tree.modules[static_cast<size_t>(module)].className)))
        matched.emplace_back(module, numel);
    }
  }

  void reportWhole() {
    if (!config.sharded())
      return;
    Field field = subject.in("fsdp_config", "fsdp_auto_wrap_policy");
    subject.report(Severity::Note, "wraps-nothing", field,
                   "without a wrap policy each rank gathers all " +
                       countText(total) + " parameters of " + model() +
                       " at once, " + gathered(total),
                   "write fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP");
  }

  void reportNothing() {
    if (*config.wrapPolicy == WrapPolicy::Size) {
      subject.report(Severity::Warning, "wraps-nothing",
                     subject.in("fsdp_config", "fsdp_min_num_params"),
                     "no module of " + model() + " reaches " +
                         std::to_string(*config.minNumParams) +
                         " parameters: the model is one unit, " +
                         gathered(total) + " gathered at once",
                     "write fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP");
      return;
    }
    subject.report(
        Severity::Warning, "wraps-nothing", place,
        classes.empty() ? model() +
                              " names no layers (_no_split_modules), so "
                              "nothing is wrapped: " +
                              gathered(total) + " are gathered at once"
                        : "nothing is wrapped: " + gathered(total) +
                              " are gathered at once",
        classes.empty() ? "name the layer class in " + std::string(classesKey)
                        : wrapHint());
  }

  void reportEmptyClasses() {
    for (const std::string &name : classes) {
      bool unit = false, root = name == tree.modules[0].className;
      for (const auto &[module, numel] : matched)
        unit |= tree.modules[static_cast<size_t>(module)].className == name;
      // What the model itself lists costs nobody anything.
      if (unit || !config.wrapClasses->has_value())
        continue;
      subject.report(Severity::Warning, "wrap-empty-class", place,
                     "wrapping '" + printable(name) + "' has no effect: " +
                         (root ? "it is the whole model, which is the root "
                                 "unit anyway"
                               : "no parameters are left for it"),
                     root ? wrapHint() : "remove it");
    }
  }

  /// One unit of most of the model.
  void reportTooBig() {
    for (const auto &[module, numel] : matched) {
      const TreeModule &m = tree.modules[static_cast<size_t>(module)];
      int layers = 0;
      for (const TreeModule &other : tree.modules)
        layers += isNoSplit(other.className) && isBelow(other.fqn, m.fqn);
      if (numel * 2 < total || layers < 2)
        continue;
      subject.report(Severity::Warning, "wrap-too-big", place,
                     "the unit '" + m.fqn + "' (" + m.className + ") holds " +
                         std::to_string(numel * 100 / total) + " % of " +
                         model() + " in " + std::to_string(layers) +
                         " layers: " + gathered(numel) +
                         " are gathered at once",
                     wrapHint());
      return;
    }
  }

  /// Units inside of layers that are too small for a collective each.
  void reportTooSmall() {
    constexpr int64_t least = 1 << 20; // bytes: below, latency decides
    std::vector<int64_t> sizes;
    int inside = 0;
    for (const auto &[module, numel] : matched) {
      sizes.push_back(numel);
      for (int up = tree.modules[static_cast<size_t>(module)].parent; up > 0;
           up = tree.modules[static_cast<size_t>(up)].parent)
        if (isNoSplit(tree.modules[static_cast<size_t>(up)].className)) {
          ++inside;
          break;
        }
    }
    std::sort(sizes.begin(), sizes.end());
    int64_t median = sizes[sizes.size() / 2];
    int64_t several = 2 * std::max<int64_t>(tree.sizes.layers, 1);
    if (inside * 2 < static_cast<int>(sizes.size()) ||
        static_cast<int64_t>(sizes.size()) < several ||
        median * subject.gatheredBytes() >= least)
      return;
    subject.report(Severity::Warning, "wrap-too-small", place,
                   std::to_string(sizes.size()) +
                       " units, half of them of at most " + gathered(median) +
                       ": each costs collectives of its own, which wait for "
                       "latency",
                   wrapHint());
  }

  /// Layers, or much else, that no unit but the root holds.
  void reportRoot() {
    int64_t inRoot = 0, ofLayers = 0, allLayers = 0;
    for (int p : rootParameters)
      inRoot += tree.parameters[static_cast<size_t>(p)].numel();
    int left = 0;
    std::string example;
    for (size_t i = 1; i < tree.modules.size(); ++i) {
      const TreeModule &m = tree.modules[i];
      if (!isNoSplit(m.className) ||
          layerClasses().find(m.className) == std::string::npos)
        continue;
      int64_t here = 0, whole = 0;
      for (int p : tree.parametersOf(static_cast<int>(i))) {
        int64_t n = tree.parameters[static_cast<size_t>(p)].numel();
        whole += n;
        here += rootParameters.count(p) ? n : 0;
      }
      ofLayers += here;
      allLayers += whole;
      if (here * 10 > whole) {
        ++left;
        example = m.className;
      }
    }
    if (left && ofLayers * 20 > allLayers) {
      subject.report(Severity::Warning, "layers-in-root", place,
                     countText(ofLayers) + " of " + countText(allLayers) +
                         " parameters of " + std::to_string(left) + " " +
                         example +
                         " are in no unit but the root, which stays gathered "
                         "(" +
                         gathered(ofLayers) + ")",
                     wrapHint());
      return;
    }
    constexpr int64_t noteworthy = 256 << 20; // bytes
    if ((inRoot - ofLayers) * 4 > total &&
        inRoot * subject.gatheredBytes() >= noteworthy)
      subject.report(Severity::Note, "root-parameters", place,
                     countText(inRoot) + " of " + countText(total) +
                         " parameters are in the root unit and stay gathered "
                         "through a step (" +
                         gathered(inRoot) + ")",
                     subject.isFsdp2()
                         ? ""
                         : "FSDP2 gives the embeddings units of their own");
  }

  /// The same classes decide what is recomputed.
  void reportCheckpointing() {
    if (!*config.activationCheckpointing)
      return;
    bool layer = false;
    for (const auto &[module, numel] : matched) {
      const TreeModule &m = tree.modules[static_cast<size_t>(module)];
      layer |= isNoSplit(m.className);
      for (const TreeModule &other : tree.modules)
        layer |= isNoSplit(other.className) && isBelow(other.fqn, m.fqn);
    }
    if (!layer)
      subject.report(
          Severity::Warning, "checkpointing-partial",
          subject.in("fsdp_config", "fsdp_activation_checkpointing"),
          "only the wrapped classes are checkpointed, which are parts of a "
          "layer: everything else in it keeps its activations",
          wrapHint());
  }
};

} // namespace

/// get_modules_by_pattern: re.fullmatch on module names.
static void checkIgnored(const Subject &subject) {
  const std::string &text = *subject.config->ignoredModules;
  if (text.empty() || text.size() > 2000)
    return;
  std::optional<Regex> regex = Regex::compile(text);
  if (!regex)
    return; // reported while parsing
  for (const TreeModule &module : subject.tree->modules)
    if (regex->matches(module.fqn))
      return;
  if (regex->gaveUp())
    return subject.report(Severity::Error, "invalid-regex",
                          subject.in("fsdp_config", "fsdp_ignored_modules"),
                          "the regex takes too many steps to match names of "
                          "modules",
                          Regex::slowHint);
  // A part of the names is a frequent mistake.
  std::string example;
  for (const TreeModule &module : subject.tree->modules)
    if (example.empty() && regex->isIn(module.fqn))
      example = module.fqn;
  subject.report(
      Severity::Warning, "ignored-modules",
      subject.in("fsdp_config", "fsdp_ignored_modules"),
      "the regex matches no module of " + subject.tree->architecture +
          ": nothing is ignored, since the whole name must match",
      example.empty()
          ? "names are such as '" + subject.tree->modules.back().fqn + "'"
          : "write '.*(" + printable(text) + ").*' to match '" + example + "'");
}

void checkUnits(const Subject &subject) {
  if (!subject.tree || !subject.isFsdp())
    return;
  checkIgnored(subject);
  if (subject.config->assumed.wrapPolicy)
    return;
  Units(subject).run();
}

} // namespace accel::lint
