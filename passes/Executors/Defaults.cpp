//===- Defaults.cpp - The candidate that a configuration asks for ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Executors/Executor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

namespace accel {

namespace {

constexpr std::array<std::pair<ExecutorKind, const char *>, 6> executorNames = {
    {{ExecutorKind::AccelRun, "accel-run"},
     {ExecutorKind::Fsdp2, "fsdp2"},
     {ExecutorKind::Fsdp1, "fsdp1"},
     {ExecutorKind::Ddp, "ddp"},
     {ExecutorKind::Deepspeed, "deepspeed"},
     {ExecutorKind::Single, "single"}}};

/// Dtypes as each executor derives them (Accelerate 1.12 to 1.15:
/// accelerator.py prepare_model, utils/fsdp_utils.py fsdp2_prepare_model;
/// DeepSpeed: runtime/bf16_optimizer.py, zero/stage_1_and_2.py).
DtypeRecipe recipeOf(const ExecutorSettings &settings) {
  DtypeRecipe recipe;
  recipe.storage = settings.upcast ? plan::DType::F32 : settings.loaded;
  recipe.compute = settings.param.value_or(recipe.storage);
  recipe.gradient = recipe.state = recipe.storage;
  recipe.autocast = settings.autocast;
  recipe.upcastFrozen = settings.upcastFrozen;
  switch (settings.executor) {
  case ExecutorKind::AccelRun:
    recipe.reduce = settings.reduce.value_or(recipe.storage);
    break;
  case ExecutorKind::Fsdp2:
    // From torch 2.15 a policy without reduce_dtype reduces in the gradient
    // dtype of the parameter, which is the original one.
    recipe.reduce = settings.reduce.value_or(
        atLeast(settings.torchVersion, "2.15") ? recipe.storage
                                               : recipe.compute);
    break;
  case ExecutorKind::Fsdp1:
    recipe.reduce = settings.reduce.value_or(recipe.compute);
    recipe.outputFloat = settings.autocast;
    break;
  case ExecutorKind::Ddp:
  case ExecutorKind::Single:
    recipe.reduce = recipe.storage;
    recipe.outputFloat = settings.autocast;
    break;
  case ExecutorKind::Deepspeed:
    // The model itself is turned to 16 bits; the optimizer holds fp32 copies.
    recipe.masterCopy = recipe.compute != plan::DType::F32;
    recipe.storage = recipe.compute;
    recipe.reduce = recipe.compute;
    recipe.gradient = recipe.masterCopy ? plan::DType::F32 : recipe.compute;
    recipe.state = plan::DType::F32;
    break;
  }
  return recipe;
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

const char *toString(ExecutorKind kind) {
  for (const auto &[known, name] : executorNames)
    if (known == kind)
      return name;
  return "";
}

std::optional<ExecutorKind> parseExecutor(const std::string &text) {
  for (const auto &[kind, name] : executorNames)
    if (text == name)
      return kind;
  return std::nullopt;
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

bool atLeast(const std::string &version, const std::string &other) {
  const char *a = version.c_str(), *b = other.c_str();
  for (int part = 0; part < 3; ++part) {
    char *endA = nullptr, *endB = nullptr;
    const long x = std::strtol(a, &endA, 10), y = std::strtol(b, &endB, 10);
    if (x != y)
      return x > y;
    a = *endA == '.' ? endA + 1 : endA;
    b = *endB == '.' ? endB + 1 : endB;
  }
  return true;
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
    const int64_t words = table->shape[0];
    const int64_t hidden = std::max<int64_t>(1, table->shape[1]);
    const int64_t rows = std::max<int64_t>(1, model.tokens());
    const int64_t parts = (words + hidden - 1) / hidden;
    const auto size = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>((rows + parts - 1) / parts)));
    return (rows + size - 1) / size;
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
