//===- StepLayout.cpp - What a candidate makes of a model -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepLayout.h"

#include "passes/Cost/OpCost.h"

#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

namespace accel {

UnitSizes &UnitSizes::operator+=(const UnitSizes &other) {
  numel += other.numel;
  ranks = other.ranks;
  apart = other.apart;
  paddedNumel += other.paddedNumel;
  trainablePadded += other.trainablePadded;
  shardStored += other.shardStored;
  trainedStored += other.trainedStored;
  stateBytes += other.stateBytes;
  pagedBytes += other.pagedBytes;
  codedStates += other.codedStates;
  updates += other.updates;
  trainedBytes += other.trainedBytes;
  cast += other.cast;
  gatherOutput += other.gatherOutput;
  unsharded += other.unsharded;
  stays += other.stays;
  gradients += other.gradients;
  heldGradients += other.heldGradients;
  reduceInput += other.reduceInput;
  reduceOutput += other.reduceOutput;
  shardGradient += other.shardGradient;
  return *this;
}

void StepLayout::measureModel() {
  lastReader.assign(model.values.size(), -1);
  firstGradient.assign(model.values.size(), -1);
  firstUser.assign(model.parameters.size(), -1);
  lastUser.assign(model.parameters.size(), -1);
  modules.assign(model.calls.size(), 0);
  for (size_t c = 0; c < model.calls.size(); ++c) {
    const StepCall &call = model.calls[c];
    std::string_view module; // of the parameter before
    for (int parameter : call.parameters) {
      const std::string_view fqn = model.parameters[parameter].fqn;
      const std::string_view owner = fqn.substr(0, fqn.rfind('.'));
      modules[c] += owner != module;
      module = owner;
    }
    for (int value : call.inputs)
      lastReader[value] = static_cast<int>(c);
    for (int i : model.kinds[call.kind].inputGradients)
      if (model.values[call.inputs[i]].producer >= 0)
        firstGradient[call.inputs[i]] = static_cast<int>(c);
    for (int parameter : call.parameters) {
      if (firstUser[parameter] < 0)
        firstUser[parameter] = static_cast<int>(c);
      lastUser[parameter] = static_cast<int>(c);
    }
  }
  std::map<std::tuple<std::vector<int64_t>, plan::DType, bool, bool, int64_t,
                      bool, bool, bool>,
           int>
      known;
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const StepParameter &p = model.parameters[i];
    auto [at, isNew] = known.try_emplace(
        {p.shape, p.dtype, p.trainable, isRead(int(i)), p.packedBytes,
         p.packedIsParameter, p.embedding, p.expert},
        static_cast<int>(kinds.size()));
    if (isNew)
      kinds.push_back(static_cast<int>(i));
    kindOf.push_back(at->second);
  }
}

void StepLayout::prepare(const Candidate &chosen, RankClass rankClass) {
  candidate = &chosen;
  shards = chosen.shards();
  replicas = chosen.replicas();
  sameExperts = chosen.sameExperts();
  rounding = model.device == "cpu" || chosen.executor == FrameworkKind::AccelRun
                 ? plan::alignmentBytes
                 : 512;
  measureUnits(rankClass);
  measureUpdate(rankClass);
  measureGraphs();
  measureTimes();
  findLifetimes();
  findBlocks();
}

Picoseconds StepLayout::copyTime(double bytes) const {
  return bytes > 0 ? toPicoseconds(memorySeconds(target, bytes)) : 0;
}

Picoseconds StepLayout::hostTime(double bytes) const {
  return bytes > 0 ? toPicoseconds(hostCopySeconds(target, bytes)) : 0;
}

Picoseconds StepLayout::updateTime(double parameters, double gradients,
                                   double states) const {
  const plan::UpdateCost &cost = candidate->update->cost(candidate->optimizer);
  Picoseconds time =
      copyTime(cost.parameters * parameters + cost.gradients * gradients +
               cost.states * states);
  if (updateFlops > 0)
    time += toPicoseconds(updateFlops / target.flops(plan::DType::BF16));
  return time;
}

/// Elements of 8-bit states that a multiprocessor decodes and encodes in a
/// second, by a search in the map of codes (bitsandbytes,
/// kOptimizerStatic8bit2StateBlockwise). Measured on an H100: 1.95e9 in 27.0 ms
/// (test/bench/gpu_training.py kernels), at a ninth of the memory's rate.
constexpr double codedPerMultiprocessor = 0.55e9;

Picoseconds StepLayout::codingTime(int64_t codedStates) const {
  const double rate =
      codedPerMultiprocessor * static_cast<double>(target.multiprocessors);
  return rate > 0 ? toPicoseconds(static_cast<double>(codedStates) / rate) : 0;
}

StepLayout::Updated StepLayout::updated(const StepParameter &parameter,
                                        RankClass rankClass) const {
  static const std::vector<int64_t> flat = {1};
  const int64_t ranks = shardsOf(parameter).ranks;
  const int64_t rows = parameter.shape.empty() ? 1 : parameter.shape.front();
  const int64_t rest = rows > 0 ? parameter.numel() / rows : 0;
  const int64_t chunk = (rows + ranks - 1) / ranks; // torch.chunk
  const int64_t own =
      rankClass == RankClass::First
          ? chunk
          : std::clamp<int64_t>(rows - chunk * (ranks - 1), 0, chunk);
  if (parameter.shape.empty() || candidate->executor == FrameworkKind::Fsdp1 ||
      candidate->executor == FrameworkKind::Deepspeed)
    return {flat, own * rest, own * rest};
  return {parameter.shape, own, own * rest};
}

int64_t StepLayout::stateBytes(const plan::StateRule &state, const Updated &own,
                               const StepParameter &parameter,
                               int64_t *paged) const {
  const plan::UpdateHabits &habits = candidate->update->habits;
  // Of flat shards nobody knows what was an embedding.
  const bool whole = &own.shape == &parameter.shape;
  const int64_t elements = plan::OptimizerRule::elements(
      state, own.shape, own.rows,
      whole && habits.wideEmbeddings && parameter.embedding);
  const int64_t bytes = elements * plan::itemSize(plan::OptimizerRule::dtypeOf(
                                       state, dtypes().state(parameter)));
  // Scales of blocks are torch's (bitsandbytes' get_state_buffer).
  if (!habits.paged || own.numel < plan::pagedElements ||
      state.shape == plan::StateShape::PerBlock ||
      state.shape == plan::StateShape::DoubleBlocks)
    return round(bytes);
  if (paged)
    *paged += bytes;
  return 0;
}

/// What one parameter's update takes beside the lists of all.
void StepLayout::measureUpdate(RankClass rankClass) {
  const plan::OptimizerRule &rule = *candidate->update;
  updateTemporary = 0;
  updateFlops = 0;
  const bool matmuls = rule.description && rule.description->matmulFlops;
  if (rule.cost(candidate->optimizer).tensors == 0 && !matmuls)
    return;
  int64_t before = 0;
  for (size_t p = 0; p < model.parameters.size(); ++p) {
    const StepParameter &parameter = model.parameters[p];
    if (!isUpdated(static_cast<int>(p)))
      continue;
    const Updated own = updated(parameter, rankClass);
    int64_t carried = 0;
    const int64_t item = plan::itemSize(dtypes().gradient(parameter));
    const int64_t bytes =
        rule.temporaryBytes(candidate->optimizer, own.shape, own.rows,
                            round(own.numel * item), item, carried);
    updateTemporary = std::max(updateTemporary, before + bytes);
    before = carried;
    if (matmuls && own.shape.size() == 2)
      updateFlops +=
          rule.description->matmulFlops(rule.values, own.rows, own.shape[1]);
  }
}

bool StepLayout::isUpdated(int parameter) const {
  const bool alone = candidate->executor == FrameworkKind::Fsdp2 ||
                     neverShards(candidate->executor);
  return model.parameters[parameter].trainable && (!alone || isRead(parameter));
}

void StepLayout::addParameter(UnitSizes &unit, int index,
                              RankClass rankClass) const {
  const StepParameter &parameter = model.parameters[index];
  const ParameterDtypes dtype = dtypes();
  const int64_t ranks = shardsOf(parameter).ranks;
  unit.ranks = ranks;
  unit.apart = isApart(parameter);
  const int64_t numel = parameter.storedNumel();
  // A packed tensor is one column.
  const int64_t rows = parameter.quantized()     ? numel
                       : parameter.shape.empty() ? 1
                                                 : parameter.shape.front();
  const int64_t rest = rows > 0 ? numel / rows : 0;
  const int64_t chunk = (rows + ranks - 1) / ranks; // torch.chunk
  const int64_t padded = chunk * ranks * rest;
  const plan::DType storage = dtype.storage(parameter);
  const int64_t compute = plan::itemSize(dtype.compute(parameter));
  unit.numel += numel;
  unit.paddedNumel += padded;
  const int64_t stored = round(chunk * rest * plan::itemSize(storage));
  unit.shardStored += stored;
  unit.unsharded += round(padded * compute);
  if (parameter.staysGathered)
    unit.stays += round(padded * compute);
  if (ranks > 1)
    unit.gatherOutput += padded * compute;
  if (dtype.compute(parameter) != storage)
    unit.cast += padded / ranks * compute;
  if (!isUpdated(index))
    return;
  unit.trainablePadded += padded;
  unit.trainedStored += stored;
  const Updated own = updated(parameter, rankClass);
  for (const plan::StateRule &state : candidate->update->states) {
    const int64_t before = unit.stateBytes + unit.pagedBytes;
    unit.stateBytes += stateBytes(state, own, parameter, &unit.pagedBytes);
    if (state.dtype == plan::DType::U8)
      unit.codedStates += unit.stateBytes + unit.pagedBytes - before;
  }
  unit.updates += 1;
  const int64_t gradient = plan::itemSize(dtype.gradient(parameter));
  const int64_t reduce = plan::itemSize(dtype.reduce(parameter));
  unit.trainedBytes += round(own.numel * gradient);
  unit.gradients +=
      round(numel * plan::itemSize(dtype.freshGradient(parameter)));
  unit.heldGradients += round(numel * reduce);
  unit.reduceInput += padded * reduce;
  unit.reduceOutput += padded / ranks * reduce;
  if (dtype.reduce(parameter) != dtype.gradient(parameter))
    unit.shardGradient += padded / ranks * gradient;
}

void StepLayout::measureKinds(RankClass rankClass) {
  sizesOfKind.assign(kinds.size(), UnitSizes());
  freshGradientOfKind.resize(kinds.size());
  for (size_t k = 0; k < kinds.size(); ++k) {
    const StepParameter &p = model.parameters[kinds[k]];
    addParameter(sizesOfKind[k], kinds[k], rankClass);
    freshGradientOfKind[k] =
        round(p.numel() * plan::itemSize(dtypes().freshGradient(p)));
  }
}

void StepLayout::measureUnits(RankClass rankClass) {
  measureKinds(rankClass);
  // Most candidates of a search differ in something else.
  const bool same = measured.unitOf == candidate->unitOf &&
                    measured.rootUnit == candidate->rootUnit &&
                    measured.rounding == rounding &&
                    measured.sizesOfKind == sizesOfKind &&
                    units.size() == static_cast<size_t>(candidate->numUnits());
  if (same)
    return;
  measured = {candidate->unitOf, candidate->rootUnit, rounding, sizesOfKind};
  units.assign(candidate->numUnits(), UnitSizes());
  for (size_t p = 0; p < model.parameters.size(); ++p)
    units[candidate->unitOf[p]] += sizesOf(static_cast<int>(p));
  // Collectives have one tensor each.
  for (UnitSizes &unit : units)
    for (int64_t UnitSizes::*tensor :
         {&UnitSizes::gatherOutput, &UnitSizes::cast, &UnitSizes::reduceInput,
          &UnitSizes::reduceOutput, &UnitSizes::shardGradient})
      unit.*tensor = round(unit.*tensor);
  const int last = static_cast<int>(model.calls.size()) - 1;
  for (int c = 0; c <= last; ++c)
    for (int parameter : model.calls[c].parameters) {
      UnitSizes &unit = units[candidate->unitOf[parameter]];
      if (unit.firstCall < 0)
        unit.firstCall = c;
      unit.lastCall = c;
    }
  // Forwards gather a unit, but for the root's: FSDP's leave alone what does
  // not run (a tower without images).
  const bool onlyRun = candidate->executor == FrameworkKind::Fsdp1 ||
                       candidate->executor == FrameworkKind::Fsdp2;
  for (size_t u = 0; u < units.size(); ++u)
    if (static_cast<int>(u) == candidate->rootUnit ||
        (units[u].firstCall < 0 && !onlyRun)) {
      units[u].firstCall = 0;
      units[u].lastCall = last;
    }
}

void StepLayout::listParts(RankClass rankClass) {
  parts.assign(units.size(), UnitParts());
  for (size_t p = 0; p < model.parameters.size(); ++p) {
    const UnitSizes &sizes = sizesOf(static_cast<int>(p));
    UnitParts &unit = parts[candidate->unitOf[p]];
    unit.stored.push_back(sizes.shardStored);
    (sizes.stays > 0 ? unit.stays : unit.unsharded).push_back(sizes.unsharded);
    if (!isUpdated(static_cast<int>(p)))
      continue;
    const Updated own = updated(model.parameters[p], rankClass);
    for (const plan::StateRule &state : candidate->update->states)
      if (const int64_t bytes = stateBytes(state, own, model.parameters[p]);
          bytes > 0)
        unit.states.push_back(bytes);
    unit.trained.push_back(static_cast<int>(p));
    unit.held.push_back(sizes.heldGradients);
    unit.own.push_back(sizes.trainedBytes);
  }
}

bool StepLayout::sumsApart(int parameter) const {
  const StepParameter &p = model.parameters[parameter];
  const bool cast = candidate->dtypes.autocast &&
                    dtypes().freshGradient(p) == plan::DType::F32;
  return waits(parameter) && !cast;
}

bool StepLayout::waits(int parameter) const {
  return model.parameters[parameter].trainable &&
         firstUser[parameter] != lastUser[parameter] &&
         candidate->executor != FrameworkKind::AccelRun &&
         candidate->executor != FrameworkKind::Megatron;
}

void StepLayout::findLifetimes() {
  savedUntil.assign(model.values.size(), -1);
  for (int c = static_cast<int>(model.calls.size()) - 1; c >= 0; --c) {
    const StepCall &call = model.calls[c];
    const SegmentVariant &v = variant(c);
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (v.savesInput[i] && !movesInput(c, i))
        savedUntil[call.inputs[i]] = c;
    for (size_t i = 0; i < call.outputs.size(); ++i)
      if (v.savesOutput[i])
        savedUntil[call.outputs[i]] = c;
  }
}

bool StepLayout::isInner(int u) const {
  const UnitSizes &unit = units[u];
  if (isApart(unit))
    return true;
  // Of an adapter's matrices FSDP1 makes units of their own, as a flat
  // parameter is trained or frozen as a whole.
  return candidate->executor == FrameworkKind::Fsdp1 &&
         unit.firstCall == unit.lastCall && unit.trainablePadded > 0 &&
         std::ranges::any_of(opens[unit.firstCall], [&](int other) {
           return other != candidate->rootUnit &&
                  units[other].trainablePadded == 0;
         });
}

void StepLayout::findBlocks() {
  const int count = static_cast<int>(model.calls.size());
  opens.resize(count);
  closes.resize(count);
  for (int c = 0; c < count; ++c) {
    opens[c].clear();
    closes[c].clear();
  }
  longLived.assign(units.size(), false);
  gatherOrder.clear();
  for (size_t u = 0; u < units.size(); ++u) {
    const UnitSizes &unit = units[u];
    if (count == 0 || unit.numel == 0 || unit.firstCall < 0)
      continue;
    const bool root = static_cast<int>(u) == candidate->rootUnit;
    longLived[u] = root || unit.lastCall - unit.firstCall >= 64 ||
                   2 * (unit.lastCall - unit.firstCall + 1) > count;
    opens[unit.firstCall].push_back(static_cast<int>(u));
    closes[unit.lastCall].push_back(static_cast<int>(u));
    if (root)
      gatherOrder.push_back(static_cast<int>(u));
  }
  for (int c = 0; c < count; ++c) {
    // As torch notes them, when a module's forward has ended.
    std::ranges::stable_partition(closes[c], [&](int u) { return isInner(u); });
    for (bool inner : {true, false})
      for (int u : opens[c])
        if (u != candidate->rootUnit && isInner(u) == inner)
          gatherOrder.push_back(u);
  }
  blocks.clear();
  for (int c = 0; c < count;) {
    Block block;
    block.begin = c;
    block.end = c + 1;
    int opened = 0;
    for (; c < block.end; ++c)
      for (int u : opens[c])
        if (!longLived[u]) {
          block.end = std::max(block.end, units[u].lastCall + 1);
          block.unit = ++opened == 1 ? u : -1;
        }
    if (block.unit >= 0 && (units[block.unit].firstCall != block.begin ||
                            units[block.unit].lastCall != block.end - 1))
      block.unit = -1;
    blocks.push_back(block);
  }
  for (size_t b = blocks.size(); b-- > 1;)
    if (alike(blocks[b - 1], blocks[b]))
      blocks[b - 1].alike = blocks[b].alike + 1;
}

bool StepLayout::alike(const Block &a, const Block &b) const {
  if (a.unit < 0 || b.unit < 0 || a.end - a.begin != b.end - b.begin)
    return false;
  if (!units[a.unit].sameSizes(units[b.unit]) ||
      candidate->reshardAfterForward[a.unit] !=
          candidate->reshardAfterForward[b.unit])
    return false;
  for (int i = 0; i < a.end - a.begin; ++i) {
    const int c = a.begin + i, d = b.begin + i;
    if (model.calls[c].kind != model.calls[d].kind ||
        candidate->variants[c] != candidate->variants[d] ||
        candidate->offloadActivations[c] != candidate->offloadActivations[d] ||
        opens[c].size() != opens[d].size() ||
        closes[c].size() != closes[d].size() ||
        calls[c].freshGradients != calls[d].freshGradients ||
        calls[c].summedGradients != calls[d].summedGradients ||
        calls[c].waitingGradients != calls[d].waitingGradients ||
        calls[c].awaitedGradients != calls[d].awaitedGradients ||
        (candidate->replaysGraphs && graphCopies[c] != graphCopies[d]))
      return false;
    // Values that leave the block must live equally long.
    const StepCall &p = model.calls[c], &q = model.calls[d];
    for (size_t k = 0; k < p.outputs.size(); ++k)
      if (lastReader[p.outputs[k]] - c != lastReader[q.outputs[k]] - d ||
          (savedUntil[p.outputs[k]] < 0) != (savedUntil[q.outputs[k]] < 0))
        return false;
    for (size_t k = 0; k < p.inputs.size(); ++k) {
      const int v = p.inputs[k], w = q.inputs[k];
      if ((lastReader[v] == c) != (lastReader[w] == d) ||
          (savedUntil[v] == c) != (savedUntil[w] == d) ||
          (firstGradient[v] == c) != (firstGradient[w] == d))
        return false;
    }
  }
  return true;
}

std::string StepLayout::moduleOf(int unit) const {
  std::string name;
  bool first = true;
  for (size_t p = 0; p < model.parameters.size(); ++p) {
    if (candidate->unitOf[p] != unit)
      continue;
    const std::string &fqn = model.parameters[p].fqn;
    if (first)
      name = fqn.substr(0, fqn.rfind('.'));
    first = false;
    while (!name.empty() && fqn.compare(0, name.size() + 1, name + ".") != 0)
      name.resize(name.find('.') == std::string::npos ? 0 : name.rfind('.'));
  }
  return name.empty() ? "the root" : name;
}

} // namespace accel
