//===- Defaults.cpp - The candidate that a configuration asks for ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Executors/Executor.h"
#include "runtime/plan/Optimizers.h"

#include <algorithm>

namespace accel {

DtypeRecipe recipeOf(const frameworks::Precision &p, bool upcastFrozen) {
  DtypeRecipe recipe;
  recipe.storage = p.storage;
  recipe.compute = p.compute;
  recipe.reduce = p.reduce;
  recipe.gradient = p.gradient;
  recipe.state = p.state;
  recipe.masterCopy = p.masterCopy;
  recipe.upcastFrozen = upcastFrozen;
  recipe.autocast = p.autocast;
  recipe.outputFloat = p.autocast && p.output == plan::DType::F32;
  return recipe;
}

namespace {

/// The framework's dtypes for what the settings ask.
DtypeRecipe recipeOf(const ExecutorSettings &settings) {
  frameworks::PrecisionAsked asked;
  asked.param = settings.param;
  asked.reduce = settings.reduce;
  asked.output = settings.output;
  asked.autocast = settings.autocast;
  asked.masterCopies = settings.update->description->masterCopy;
  const frameworks::Precision p =
      frameworks::framework(settings.executor)
          .precision(asked,
                     settings.upcast ? plan::DType::F32 : settings.loaded,
                     {settings.torchVersion, settings.accelerateVersion});
  return accel::recipeOf(p, settings.upcastFrozen);
}

/// The variant of that name, or the first.
int variantNamed(const SegmentKind &kind, const char *name) {
  for (size_t i = 0; i < kind.variants.size(); ++i)
    if (kind.variants[i].name == name)
      return static_cast<int>(i);
  return 0;
}

/// DeepSpeed gathers and releases by module, whatever a wrap policy says: the
/// parameters that each call is the first to use are a unit.
void unitsOfCalls(const StepModel &model, Candidate &candidate) {
  candidate.unitOf.assign(model.parameters.size(), -1);
  int units = 0;
  for (const StepCall &call : model.calls) {
    bool isFirst = false;
    for (int parameter : call.parameters)
      if (candidate.unitOf[parameter] < 0) {
        candidate.unitOf[parameter] = units;
        isFirst = true;
      }
    units += isFirst;
  }
  for (int &unit : candidate.unitOf) // of no call
    unit = unit < 0 ? std::max(units - 1, 0) : unit;
  candidate.reshardAfterForward.assign(
      std::max(units, model.parameters.empty() ? 0 : 1), true);
  candidate.rootUnit = -1;
}

} // namespace

UpdateRule makeUpdateRule(const plan::Optimizer &optimizer,
                          std::optional<plan::DType> stateDtype) {
  return std::make_shared<const plan::OptimizerRule>(optimizer, stateDtype);
}

const UpdateRule &adamwRule() {
  static const UpdateRule rule = makeUpdateRule(plan::Optimizer());
  return rule;
}

const char *toString(Holding holding) {
  switch (holding) {
  case Holding::Parameters:
    return "parameters";
  case Holding::Gradients:
    return "gradients";
  case Holding::Optimizer:
    return "optimizer";
  case Holding::Activations:
    return "activations";
  case Holding::Logits:
    return "logits";
  case Holding::Gathered:
    return "gathered";
  case Holding::Buffers:
    return "buffers";
  }
  return "";
}

double modelFlopsPerToken(const StepModel &model) {
  std::vector<double> multiplied(model.parameters.size());
  double attention = 0;
  for (const StepCall &call : model.calls) {
    const SegmentKind &kind = model.kinds[call.kind];
    attention += kind.attentionFlops;
    for (size_t i = 0; i < kind.multiplied.size(); ++i) {
      double &part = multiplied[call.parameters[i]];
      part = std::max(part, kind.multiplied[i]);
    }
  }
  double flops = 0;
  for (size_t p = 0; p < multiplied.size(); ++p)
    flops += multiplied[p] * (model.parameters[p].trainable ? 6.0 : 4.0) *
             static_cast<double>(model.parameters[p].numel());
  const double tokens = static_cast<double>(model.tokens());
  return tokens > 0 ? flops + attention / tokens : 0;
}

int64_t fusedLossChunks(const StepModel &model) {
  for (const StepCall &call : model.calls) {
    const SegmentKind &kind = model.kinds[call.kind];
    const StepParameter *table = nullptr;
    for (int p : call.parameters)
      if (!table || model.parameters[p].numel() > table->numel())
        table = &model.parameters[p];
    if (!kind.loss || kind.logitsBytes <= 0 || model.sequenceLength <= 0 ||
        !table || table->shape.size() != 2)
      continue;
    return frameworks::fusedLossChunks(model.tokens(), table->shape[1],
                                       table->shape[0]);
  }
  return 1;
}

Candidate defaultCandidate(const StepModel &model,
                           const ExecutorSettings &settings) {
  Candidate candidate;
  candidate.executor = settings.executor;
  candidate.shardRanks = settings.shardRanks;
  candidate.replicateRanks = settings.replicateRanks;
  candidate.ranksPerNode = settings.ranksPerNode;
  candidate.unitOf.assign(model.parameters.size(), 0);
  for (size_t u = 0; u < model.units.size(); ++u) {
    const StepUnit &unit = model.units[u];
    for (int parameter : unit.parameters)
      candidate.unitOf[parameter] = static_cast<int>(u);
    candidate.reshardAfterForward.push_back(unit.reshardAfterForward);
    if (unit.root)
      candidate.rootUnit = static_cast<int>(u);
  }
  if (settings.executor == ExecutorKind::Deepspeed)
    unitsOfCalls(model, candidate);
  const bool own = settings.executor == ExecutorKind::AccelRun;
  for (const StepCall &call : model.calls) {
    const SegmentKind &kind = model.kinds[call.kind];
    const bool full = settings.checkpointLayers && call.layer;
    candidate.variants.push_back(
        variantNamed(kind, full                                ? "full"
                           : own && settings.checkpointDefault ? "pointwise"
                                                               : "none"));
    candidate.offloadActivations.push_back(full && settings.offloadLayerInputs);
  }
  candidate.forwardPrefetch = static_cast<int>(settings.forwardPrefetch);
  candidate.backwardPrefetch = static_cast<int>(settings.backwardPrefetch);
  candidate.accumulation = settings.accumulation;
  candidate.reduceEachMicroBatch = settings.reduceEachMicroBatch;
  candidate.recipe = recipeOf(settings);
  candidate.optimizer = settings.optimizer;
  candidate.update = settings.update;
  candidate.offloadParameters = settings.offloadParameters;
  candidate.offloadOptimizer = settings.offloadOptimizer;
  candidate.zeroStage = settings.zeroStage;
  candidate.zero = settings.zero;
  candidate.clipGradients = settings.clipGradients;
  candidate.torchVersion = settings.torchVersion;
  candidate.accelerateVersion = settings.accelerateVersion;
  return candidate;
}

} // namespace accel
