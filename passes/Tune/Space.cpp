//===- Space.cpp - What may be chosen, and what is fixed ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/Space.h"
#include "passes/FrameworkSteps/ParameterDtypes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

namespace accel::tune {

const char *toString(Knob knob) {
  switch (knob) {
  case Knob::Mesh:
    return "mesh";
  case Knob::Split:
    return "micro-batch";
  case Knob::Wrap:
    return "wrap";
  case Knob::Precision:
    return "precision";
  case Knob::Reshard:
    return "reshard";
  case Knob::ForwardPrefetch:
    return "prefetch-forward";
  case Knob::BackwardPrefetch:
    return "prefetch-backward";
  case Knob::Checkpoint:
    return "checkpoint";
  case Knob::Accumulation:
    return "accumulation";
  case Knob::ParameterOffload:
    return "parameter-offload";
  case Knob::OptimizerOffload:
    return "optimizer-offload";
  case Knob::ActivationOffload:
    return "activation-offload";
  case Knob::Bucket:
    return "bucket";
  case Knob::ZeroStage:
    return "zero-stage";
  case Knob::Loss:
    return "loss";
  case Knob::Optimizer:
    return "optimizer";
  case Knob::Reductions:
    return "reductions";
  }
  return "";
}

namespace {

/// 0 ... n - 1.
std::vector<int> below(size_t n) {
  std::vector<int> result(n);
  for (size_t i = 0; i < n; ++i)
    result[i] = static_cast<int>(i);
  return result;
}

/// Makes wrap options of a model: which layer each parameter belongs to, and
/// which configured unit otherwise.
class Wrapper {
public:
  Wrapper(const StepModel &model, const Space &space)
      : model(model), base(space.base), layers(space.layers),
        layerOf(model.parameters.size(), -1),
        inBlock(model.parameters.size(), false) {
    for (size_t l = 0; l < layers.size(); ++l)
      markLayer(static_cast<int>(l));
  }

  WrapOption configured() const {
    WrapOption option;
    option.name = "as configured";
    option.unitOf = base.unitOf;
    option.units = base.numUnits();
    option.root = base.rootUnit;
    finish(option);
    return option;
  }

  /// `perUnit` layers a unit, or two units a layer for 0.
  WrapOption grouped(int perUnit) const {
    WrapOption option;
    option.name = perUnit == 0   ? "half a layer"
                  : perUnit == 1 ? "a layer"
                                 : std::to_string(perUnit) + " layers";
    std::map<std::pair<int, int>, int> ids;
    for (size_t p = 0; p < layerOf.size(); ++p) {
      std::pair<int, int> key =
          layerOf[p] < 0 ? std::pair{-1, unitOfOther(static_cast<int>(p))}
          : perUnit      ? std::pair{layerOf[p] / perUnit, 0}
                         : std::pair{layerOf[p], inBlock[p] ? 1 : 0};
      auto [it, isNew] = ids.emplace(key, static_cast<int>(ids.size()));
      option.unitOf.push_back(it->second);
      if (isNew && key.first < 0 && key.second == base.rootUnit)
        option.root = it->second;
    }
    option.units = static_cast<int>(ids.size());
    finish(option);
    return option;
  }

private:
  void markLayer(int l) {
    const StepCall &call = model.calls[layers[l]];
    std::string prefix = call.path + ".";
    std::map<std::string, int64_t> blocks;
    for (int p : call.parameters) {
      const std::string &fqn = model.parameters[p].fqn;
      if (fqn.compare(0, prefix.size(), prefix))
        continue; // shared with others
      layerOf[p] = l;
      std::string rest = fqn.substr(prefix.size());
      blocks[rest.substr(0, rest.find('.'))] += model.parameters[p].numel();
    }
    if (blocks.empty())
      return;
    auto largest = std::max_element(
        blocks.begin(), blocks.end(),
        [](const auto &a, const auto &b) { return a.second < b.second; });
    if (blocks.size() == 1)
      return; // nothing to halve
    std::string block = prefix + largest->first + ".";
    for (int p : call.parameters)
      if (layerOf[p] == l)
        inBlock[p] = !model.parameters[p].fqn.compare(0, block.size(), block);
  }

  /// Units of layers alone vanish; what else they hold goes to the root.
  int unitOfOther(int parameter) const {
    int unit = base.unitOf[parameter];
    for (size_t p = 0; p < layerOf.size(); ++p)
      if (base.unitOf[p] == unit && layerOf[p] >= 0)
        return base.rootUnit >= 0 ? base.rootUnit : unit;
    return unit;
  }

  void finish(WrapOption &option) const {
    option.layers.assign(option.units, {-1, -1});
    std::vector<bool> before(option.units, false), after(option.units, false);
    for (size_t p = 0; p < layerOf.size(); ++p)
      if (layerOf[p] >= 0) {
        auto &range = option.layers[option.unitOf[p]];
        range[0] = range[0] < 0 ? layerOf[p] : std::min(range[0], layerOf[p]);
        range[1] = std::max(range[1], layerOf[p]);
      }
    int last = layers.empty() ? -1 : layers.back();
    for (size_t c = 0; c < model.calls.size(); ++c)
      for (int p : model.calls[c].parameters)
        (static_cast<int>(c) > last ? after : before)[option.unitOf[p]] = true;
    bool allKept =
        std::none_of(base.reshardAfterForward.begin(),
                     base.reshardAfterForward.end(), [](bool r) { return r; });
    option.reshard.assign(option.units, true);
    int layerUnits = 0;
    for (int u = 0; u < option.units; ++u) {
      if (option.layers[u][0] >= 0)
        ++layerUnits;
      if (u == option.root || (after[u] && !before[u]))
        option.reshard[u] = false;
    }
    if (!allKept)
      for (size_t p = 0; p < layerOf.size(); ++p)
        if (layerOf[p] < 0 && option.layers[option.unitOf[p]][0] < 0)
          option.reshard[option.unitOf[p]] =
              base.reshardAfterForward[base.unitOf[p]];
    if (layerUnits)
      option.perLayer = static_cast<double>(layers.size()) / layerUnits;
  }

  const StepModel &model;
  const Candidate &base;
  const std::vector<int> &layers;
  std::vector<int> layerOf;  // by parameter; -1: none, or shared
  std::vector<bool> inBlock; // of the layer's largest child
};

/// The same parameters together, whatever the numbers of the units.
bool samePartition(const WrapOption &a, const WrapOption &b) {
  std::map<int, int> there, back;
  for (size_t p = 0; p < a.unitOf.size(); ++p) {
    if (there.emplace(a.unitOf[p], b.unitOf[p]).first->second != b.unitOf[p] ||
        back.emplace(b.unitOf[p], a.unitOf[p]).first->second != a.unitOf[p])
      return false;
  }
  return true;
}

void addGroups(Space &space, const StepModel &model) {
  std::map<int, int> groupOf; // kind -> group
  for (size_t c = 0; c < model.calls.size(); ++c) {
    const StepCall &call = model.calls[c];
    auto [it, isNew] =
        groupOf.emplace(call.kind, static_cast<int>(space.groups.size()));
    if (isNew) {
      LayerGroup group;
      group.kind = call.kind;
      group.name = model.kinds[call.kind].name;
      space.groups.push_back(group);
    }
    space.groups[it->second].calls.push_back(static_cast<int>(c));
    if (call.layer)
      space.groups[it->second].layer = true;
    if (call.path.empty())
      space.groups[it->second].unnamed = true;
  }
  int offset = 0;
  for (LayerGroup &group : space.groups) {
    const auto &variants = model.kinds[group.kind].variants;
    group.variants = below(variants.size());
    std::stable_sort(group.variants.begin(), group.variants.end(),
                     [&](int a, int b) {
                       return variants[a].savedBytes > variants[b].savedBytes;
                     });
    for (int v : group.variants)
      group.names.push_back(variants[v].name);
    for (int v : group.variants)
      group.solved.push_back(variants[v].solved);
    group.allowed.assign(group.variants.size(), true);
    group.offset = offset;
    offset += static_cast<int>(group.variants.size());
  }
}

} // namespace

std::vector<int> Space::values(Knob knob, const Point &point) const {
  if (!open(knob))
    return {configured[knob]};
  int all = static_cast<int>(layers.size());
  switch (knob) {
  case Knob::Mesh: {
    std::vector<int> result;
    for (size_t m = 0; m < meshes.size(); ++m)
      if (meshes[m].allowed || static_cast<int>(m) == configured[knob])
        result.push_back(static_cast<int>(m));
    return result;
  }
  case Knob::Split:
    return below(splits.size());
  case Knob::Wrap: {
    std::vector<int> result;
    for (size_t w = 0; w < wraps.size(); ++w)
      if (wraps[w].allowed || static_cast<int>(w) == configured[knob])
        result.push_back(static_cast<int>(w));
    return result;
  }
  case Knob::Precision:
    return below(precisions.size());
  case Knob::Bucket:
    return below(buckets.size());
  case Knob::ZeroStage:
    return below(zeroStages.size());
  case Knob::Loss:
    return below(lossChunks.size());
  case Knob::Optimizer: {
    // The host's update is the configured optimizer's.
    if (point[Knob::ParameterOffload] || point[Knob::OptimizerOffload])
      return {configured[knob]};
    std::vector<int> result;
    for (size_t o = 0; o < optimizers.size(); ++o)
      if (optimizers[o].allowed || static_cast<int>(o) == configured[knob])
        result.push_back(static_cast<int>(o));
    return result;
  }
  case Knob::ForwardPrefetch:
  case Knob::BackwardPrefetch: {
    std::vector<int> result = below(maxPrefetch + 1);
    result.erase(result.begin(), result.begin() + minPrefetch);
    return result;
  }
  case Knob::Reductions: {
    // Each saves less than the one before it.
    std::vector<int> result = {0, configured[knob], maxReductions};
    for (int n = 1; n < maxReductions; n *= 2)
      result.push_back(n);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }
  case Knob::Accumulation:
    if (accumulationOf(point) == 1)
      return {configured[knob]};
    return {0, 1};
  case Knob::ParameterOffload:
  case Knob::OptimizerOffload:
    return {0, 1};
  case Knob::ActivationOffload:
    if (offloadNeedsFull || uniformCheckpoint)
      return all ? std::vector<int>{0, all} : std::vector<int>{0};
    return below(all + 1);
  case Knob::Reshard: {
    std::vector<int> result;
    for (const auto &range : wraps[point[Knob::Wrap]].layers)
      if (range[0] >= 0 && (!uniformReshard || range[0] == 0))
        result.push_back(all - range[0]);
    result.push_back(0);
    std::reverse(result.begin(), result.end());
    if (!std::is_sorted(result.begin(), result.end()))
      std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }
  case Knob::Checkpoint:
    break;
  }
  return {configured[knob]};
}

/// Whether `values` has the point's value; without the list where it is long.
bool Space::allows(Knob knob, const Point &point) const {
  const int value = point[knob], all = static_cast<int>(layers.size());
  if (open(knob) && knob == Knob::ActivationOffload && !offloadNeedsFull &&
      !uniformCheckpoint)
    return value >= 0 && value <= all;
  if (open(knob) && knob == Knob::Reshard) {
    const auto &ranges = wraps[point[Knob::Wrap]].layers;
    return value == 0 ||
           std::any_of(ranges.begin(), ranges.end(), [&](const auto &range) {
             return range[0] >= 0 && (!uniformReshard || range[0] == 0) &&
                    all - range[0] == value;
           });
  }
  const std::vector<int> allowed = values(knob, point);
  return std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

int Space::functionsOfLoss(const Point &point) const {
  const int loss = point[Knob::Loss];
  const bool liger =
      static_cast<size_t>(loss) < lossChunks.size() && lossChunks[loss] == 0;
  return liger || base.executor == FrameworkKind::AccelRun ? loss : 0;
}

std::string Space::problemBesideCounts(const Point &point) const {
  for (int k = 0; k < numKnobs; ++k) {
    Knob knob = static_cast<Knob>(k);
    if (knob == Knob::Checkpoint || knob == Knob::Reshard)
      continue;
    if (!allows(knob, point))
      return std::string(toString(knob)) + " is out of range";
  }
  if (open(Knob::Reshard) && !allows(Knob::Reshard, point))
    return "a unit cannot stay gathered in part";
  if (!meshes.empty() && functionsOf(point) != functionsOf(configured)) {
    // Each has models of its own, so that those are few.
    const int64_t micro = splits[point[Knob::Split]].microBatch;
    if (micro > splits.front().microBatch ||
        (point[Knob::Split] != 0 &&
         std::any_of(splits.begin(), splits.end(), [&](const SplitOption &s) {
           return s.microBatch < micro;
         })))
      return "other meshes are tried with the configured and the smallest "
             "micro-batch";
    if (point[Knob::Precision] != configured[Knob::Precision])
      return "other meshes are tried with the configured precision";
  }
  return "";
}

std::string Space::problem(const Point &point) const {
  std::string problem = problemBesideCounts(point);
  if (!problem.empty())
    return problem;
  if (!open(Knob::Checkpoint) && point.counts != configured.counts)
    return "checkpointing is fixed";
  if (open(Knob::Checkpoint) && uniformCheckpoint) {
    std::vector<std::vector<int>> allowed = uniformCounts();
    if (std::find(allowed.begin(), allowed.end(), point.counts) ==
        allowed.end())
      return "layers cannot differ in checkpointing";
  }
  bool allFull = true;
  for (const LayerGroup &group : groups) {
    int sum = 0;
    for (size_t v = 0; v < group.variants.size(); ++v) {
      int n = point.counts[group.offset + v];
      if (n < 0)
        return "a negative count";
      sum += n;
      if (n && !group.allowed[v])
        return "layers cannot be checkpointed in this way";
    }
    if (sum != static_cast<int>(group.calls.size()))
      return "the counts of a group are not its calls";
    if (group.layer && point.counts[group.offset + group.variants.size() - 1] !=
                           static_cast<int>(group.calls.size()))
      allFull = false;
  }
  if (offloadNeedsFull && point[Knob::ActivationOffload] && !allFull)
    return "saved tensors are offloaded only where layers are recomputed";
  return "";
}

std::vector<std::vector<int>> Space::uniformCounts() const {
  std::vector<std::vector<int>> result;
  auto position = [](const LayerGroup &group, const std::string &name) {
    auto it = std::find(group.names.begin(), group.names.end(), name);
    int v = static_cast<int>(it - group.names.begin());
    return it == group.names.end() || !group.allowed[v] ? -1 : v;
  };
  auto fill = [](std::vector<int> &counts, const LayerGroup &group, int v) {
    std::fill_n(counts.begin() + group.offset, group.names.size(), 0);
    counts[group.offset + v] = static_cast<int>(group.calls.size());
  };
  std::vector<std::string> names;
  for (const LayerGroup &group : groups)
    if (group.layer)
      for (const std::string &name : group.names)
        if (std::find(names.begin(), names.end(), name) == names.end())
          names.push_back(name);
  for (const std::string &name : names) {
    std::vector<int> counts = configured.counts;
    bool everywhere = true;
    for (const LayerGroup &group : groups) {
      bool follows = !group.layer && base.executor == FrameworkKind::AccelRun;
      int v = group.layer ? position(group, name)
              : follows   ? position(group, name == "none" ? name : "pointwise")
                          : -1;
      if (v >= 0)
        fill(counts, group, v);
      else if (group.layer)
        everywhere = false;
    }
    if (everywhere)
      result.push_back(std::move(counts));
  }
  if (result.empty())
    result.push_back(configured.counts);
  return result;
}

/// FSDP1 flattens a unit into one tensor of one dtype (_flat_param.py, "Must
/// flatten tensors with uniform dtype"): an fp32 adapter and a base in 16 bits
/// are units apart.
static bool canFlatten(const WrapOption &option, const StepModel &model,
                       const Candidate &base) {
  if (base.executor != FrameworkKind::Fsdp1)
    return true;
  const ParameterDtypes dtypes(base);
  std::map<int, plan::DType> of;
  for (size_t p = 0; p < option.unitOf.size(); ++p) {
    const plan::DType own = dtypes.storage(model.parameters[p]);
    if (of.emplace(option.unitOf[p], own).first->second != own)
      return false;
  }
  return true;
}

void addModel(Space &space, const StepModel &model, bool halves,
              bool severalLayers) {
  for (size_t c = 0; c < model.calls.size(); ++c)
    if (model.calls[c].layer)
      space.layers.push_back(static_cast<int>(c));
  addGroups(space, model);
  Wrapper wrapper(model, space);
  space.wraps.push_back(wrapper.configured());
  int n = static_cast<int>(space.layers.size());
  std::vector<int> sizes;
  if (halves && n)
    sizes.push_back(0);
  if (n)
    sizes.push_back(1);
  if (severalLayers)
    for (int k = 2; k < n && k <= 8; k *= 2)
      sizes.push_back(k);
  for (int k : sizes) {
    WrapOption option = wrapper.grouped(k);
    bool known = false;
    for (WrapOption &other : space.wraps)
      if (samePartition(option, other)) {
        known = true;
        if (&other == &space.wraps[0])
          other.name = option.name;
      }
    if (!known && canFlatten(option, model, space.base))
      space.wraps.push_back(std::move(option));
  }
}

bool locate(Space &space, const StepModel &model) {
  const Candidate &base = space.base;
  Point &point = space.configured;
  point.at.fill(0);
  point[Knob::ForwardPrefetch] = base.forwardPrefetch;
  point[Knob::BackwardPrefetch] = base.backwardPrefetch;
  point[Knob::Accumulation] = base.reduceEachMicroBatch ? 0 : 1;
  point[Knob::ParameterOffload] = base.offloadParameters;
  point[Knob::OptimizerOffload] = base.offloadOptimizer;
  space.maxReductions = base.numUnits();
  point[Knob::Reductions] = static_cast<int>(
      std::min<int64_t>(base.awaitReductions, space.maxReductions));
  space.maxPrefetch = std::max(
      {space.maxPrefetch, base.forwardPrefetch, base.backwardPrefetch});
  int all = static_cast<int>(space.layers.size());
  int kept = 0;
  for (size_t u = 0; u < space.wraps[0].layers.size(); ++u)
    if (space.wraps[0].layers[u][0] >= 0 && !base.reshardAfterForward[u])
      kept = std::max(kept, all - space.wraps[0].layers[u][0]);
  point[Knob::Reshard] = kept;
  int offloaded = 0;
  for (int l = 0; l < all; ++l)
    if (space.layers[l] < static_cast<int>(base.offloadActivations.size()) &&
        base.offloadActivations[space.layers[l]])
      offloaded = l + 1;
  point[Knob::ActivationOffload] = offloaded;
  point.counts.clear();
  for (const LayerGroup &group : space.groups)
    for (int variant : group.variants) {
      int n = 0;
      for (int c : group.calls)
        if (base.variants[c] == variant)
          ++n;
      point.counts.push_back(n);
    }
  Candidate same = expand(space, model, point);
  return same.reshardAfterForward == base.reshardAfterForward &&
         space.problem(point).empty();
}

Candidate expand(const Space &space, const StepModel &model,
                 const Point &point) {
  Candidate c = space.base;
  if (!space.splits.empty())
    c.accumulation = space.accumulationOf(point);
  if (!space.meshes.empty())
    c.mesh = space.mesh(point).mesh;
  if (c.executor == FrameworkKind::Megatron && !space.meshes.empty())
    c.megatron.lastLayers = static_cast<int>(space.mesh(point).lastLayers);
  if (!space.precisions.empty())
    c.dtypes = space.precisions[point[Knob::Precision]].dtypes;
  if (!space.buckets.empty() && point[Knob::Bucket]) {
    // A size of one's own is that of the first bucket as well.
    c.bucketBytes = space.buckets[point[Knob::Bucket]];
    c.firstBucketBytes =
        c.bucketBytes == 25 << 20 ? int64_t(1) << 20 : c.bucketBytes;
  }
  if (!space.lossChunks.empty() && c.executor != FrameworkKind::AccelRun) {
    const int64_t chunks = space.lossChunks[point[Knob::Loss]];
    c.lossChunks = chunks ? chunks : fusedLossChunks(model);
  }
  if (!space.optimizers.empty() && point[Knob::Optimizer]) {
    c.update = space.optimizers[point[Knob::Optimizer]].update;
    c.optimizer = space.optimizers[point[Knob::Optimizer]].kernel;
  }
  if (!space.zeroStages.empty())
    c.zeroStage = space.zeroStages[point[Knob::ZeroStage]];
  c.forwardPrefetch = point[Knob::ForwardPrefetch];
  c.backwardPrefetch = point[Knob::BackwardPrefetch];
  c.reduceEachMicroBatch = point[Knob::Accumulation] == 0;
  c.awaitReductions = point[Knob::Reductions];
  c.offloadParameters = point[Knob::ParameterOffload];
  c.offloadOptimizer = point[Knob::OptimizerOffload];
  if (!c.offloadOptimizer)
    c.disk.reset();
  // Where the shards are, the optimizer runs.
  if (c.executor == FrameworkKind::Fsdp1 || c.executor == FrameworkKind::Fsdp2)
    c.offloadOptimizer = c.offloadParameters;

  const WrapOption &wrap = space.wraps[point[Knob::Wrap]];
  int all = static_cast<int>(space.layers.size());
  int kept = point[Knob::Reshard];
  c.unitOf = wrap.unitOf;
  c.rootUnit = wrap.root;
  c.reshardAfterForward.assign(wrap.units, false);
  for (int u = 0; u < wrap.units; ++u)
    c.reshardAfterForward[u] = wrap.layers[u][0] >= 0
                                   ? wrap.layers[u][0] < all - kept
                                   : wrap.reshard[u] && !(all && kept == all);

  c.variants.resize(model.calls.size(), 0);
  // As configured it may be each second layer; elsewhere the first ones.
  const bool asConfigured = point.counts == space.configured.counts;
  for (const LayerGroup &group : space.groups) {
    if (asConfigured)
      break;
    size_t next = 0;
    for (size_t v = group.variants.size(); v-- > 0;)
      for (int i = 0; i < point.counts[group.offset + v]; ++i)
        c.variants[group.calls[next++]] = group.variants[v];
  }
  c.offloadActivations.assign(model.calls.size(), false);
  for (int l = 0; l < point[Knob::ActivationOffload]; ++l)
    c.offloadActivations[space.layers[l]] = true;
  return c;
}

} // namespace accel::tune
