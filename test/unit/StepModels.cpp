//===- StepModels.cpp - Small step models for tests -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/StepModels.h"

#include "runtime/plan/Optimizers.h"

namespace accel::stepmodels {
namespace {

int64_t between(std::mt19937 &random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

SegmentVariant makeVariant(const char *name, const SegmentKind &kind,
                           int64_t saved, double seconds) {
  SegmentVariant v;
  v.name = name;
  v.forwardSeconds = v.compiledForwardSeconds = seconds;
  v.backwardSeconds = v.compiledBackwardSeconds = 2 * seconds;
  v.savedBytes = saved;
  v.forwardPeakBytes = saved + kind.outputBytes;
  v.backwardPeakBytes = kind.inputGradientBytes;
  v.backwardPeakFreshBytes = v.backwardPeakAddedBytes = v.backwardPeakBytes;
  v.forwardOps = 10;
  v.backwardOps = 20;
  return v;
}

void addUnit(StepModel &model, const std::string &name,
             std::vector<int> parameters, bool reshard) {
  StepUnit unit;
  unit.name = name;
  unit.parameters = std::move(parameters);
  unit.reshardAfterForward = reshard;
  model.units.push_back(std::move(unit));
}

int addParameter(StepModel &model, const std::string &fqn,
                 std::vector<int64_t> shape) {
  StepParameter parameter;
  parameter.fqn = fqn;
  parameter.shape = std::move(shape);
  model.parameters.push_back(std::move(parameter));
  return static_cast<int>(model.parameters.size()) - 1;
}

int addValue(StepModel &model, int64_t bytes, int producer, bool gradient) {
  StepValue value;
  value.bytes = value.gradientBytes = bytes;
  value.producer = producer;
  value.gradient = gradient;
  model.values.push_back(value);
  return static_cast<int>(model.values.size()) - 1;
}

/// Gradients of the parameters join the peak as autograd makes them.
void addGradientPeaks(SegmentVariant &v, int64_t gradients, int64_t largest) {
  v.backwardPeakFreshBytes = v.backwardPeakBytes + gradients;
  v.backwardPeakAddedBytes = v.backwardPeakBytes + largest;
}

} // namespace

StepModel uniformModel(int64_t layers, std::vector<int64_t> shape,
                       int64_t saved, int64_t gradientItem) {
  StepModel model;
  model.device = "cuda";
  model.microBatch = 1;
  model.sequenceLength = 128;
  SegmentKind kind;
  kind.name = "Layer";
  kind.inputBytes = kind.outputBytes = kind.inputGradientBytes = 512;
  kind.inputGradients = {0};
  StepParameter parameter;
  parameter.shape = shape;
  kind.parameterGradientBytes = parameter.numel() * gradientItem;
  SegmentVariant none = makeVariant("none", kind, saved, 1e-3);
  none.savesInput = {true};
  none.savesOutput = {false};
  none.savedInputBytes = 512;
  addGradientPeaks(none, kind.parameterGradientBytes,
                   kind.parameterGradientBytes);
  kind.variants.push_back(none);
  model.kinds.push_back(kind);
  int value = addValue(model, 512, -1, false);
  for (int64_t i = 0; i < layers; ++i) {
    StepCall call;
    call.path = "layers." + std::to_string(i);
    call.layer = true;
    call.inputs = {value};
    value = addValue(model, 512, static_cast<int>(i), true);
    call.outputs = {value};
    call.parameters = {addParameter(model, call.path + ".weight", shape)};
    addUnit(model, call.path, call.parameters, true);
    model.calls.push_back(call);
  }
  if (!model.values.empty())
    model.values.back().gradient = false;
  return model;
}

namespace {

/// The framework's dtypes for what the settings ask.
StepDtypes recipeFor(const Settings &settings) {
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
  return accel::stepDtypesOf(p, settings.upcastFrozen);
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

Candidate configuredCandidate(const StepModel &model,
                              const Settings &settings) {
  Candidate candidate;
  candidate.executor = settings.executor;
  candidate.mesh = settings.mesh;
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
  if (settings.executor == FrameworkKind::Deepspeed)
    unitsOfCalls(model, candidate);
  const bool own = settings.executor == FrameworkKind::AccelRun;
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
  candidate.dtypes = recipeFor(settings);
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

Candidate uniformCandidate(const StepModel &model, FrameworkKind executor) {
  Settings settings;
  settings.executor = executor;
  settings.ranksPerNode = 8;
  return configuredCandidate(model, settings);
}

int64_t batchBytes(const StepModel &model) {
  int64_t bytes = 0;
  for (const StepValue &value : model.values)
    if (value.producer < 0)
      bytes += value.bytes;
  return bytes;
}

int64_t persistentOf(const StepModel &model, const Target &target,
                     const Settings &settings) {
  return StepEvaluator(model, target)
      .evaluate(configuredCandidate(model, settings))
      .persistentBytes;
}

StepModel randomModel(std::mt19937 &random) {
  StepModel model;
  model.device = "cuda";
  model.microBatch = between(random, 1, 4);
  model.sequenceLength = between(random, 1, 4096);
  const int64_t hidden = 512 * between(random, 1, 64);
  const int64_t rows = between(random, 1, 300), width = between(random, 1, 900);
  auto kindOf = [&](const char *name, int64_t in, int64_t out, bool gradient,
                    int64_t numel) {
    SegmentKind kind;
    kind.name = name;
    kind.inputBytes = in;
    kind.outputBytes = out;
    kind.inputGradientBytes = gradient ? in : 0;
    if (gradient)
      kind.inputGradients = {0};
    kind.parameterGradientBytes = numel * 4;
    const double seconds = 1e-6 * static_cast<double>(between(random, 1, 9999));
    for (const char *variant : {"none", "pointwise", "full"}) {
      const int64_t saved =
          variant[0] == 'f' ? 0 : 512 * between(random, 0, 4000);
      SegmentVariant v = makeVariant(variant, kind, saved, seconds);
      v.savesInput = {variant[0] == 'f' || between(random, 0, 1) == 1};
      v.savesOutput = {false};
      v.savedInputBytes = v.savesInput[0] ? in : 0;
      v.backwardPeakBytes += 512 * between(random, 0, 4000);
      v.backwardReads = {true};
      addGradientPeaks(v, kind.parameterGradientBytes, numel * 4);
      if (variant[0] == 'f')
        v.recomputeSeconds = seconds;
      kind.variants.push_back(std::move(v));
    }
    model.kinds.push_back(std::move(kind));
  };
  kindOf("Embedding", 512, hidden, false, rows * width);
  kindOf("Layer", hidden, hidden, true, width * width);
  kindOf("Other", hidden, hidden, true, rows * rows);
  kindOf("Head", hidden, 512, true, rows * width);
  // What torch.compile would replay: layers, and in some models the rest.
  for (size_t k = 0; k < model.kinds.size(); ++k)
    for (SegmentVariant &v : model.kinds[k].variants)
      if (k == 1 || k == 2 || hidden % 1024 == 0)
        v.compiledForwardKernels = v.compiledBackwardKernels = 9;
  model.kinds[3].loss = true;
  for (SegmentVariant &v : model.kinds[3].variants)
    v.lossPeakBytes = 512 * between(random, 0, 9000);
  int value = addValue(model, 512, -1, false);
  auto add = [&](int kind, const std::string &path, bool layer,
                 std::vector<int64_t> shape, bool reshard) {
    StepCall call;
    call.kind = kind;
    call.path = path;
    call.layer = layer;
    call.inputs = {value};
    value = addValue(model, model.kinds[kind].outputBytes,
                     static_cast<int>(model.calls.size()), kind != 3);
    call.outputs = {value};
    call.parameters = {addParameter(model, path + ".weight", std::move(shape))};
    addUnit(model, path, call.parameters, reshard);
    model.calls.push_back(std::move(call));
  };
  add(0, "embed", false, {rows, width}, true);
  const int64_t layers = between(random, 1, 40);
  const int64_t odd = between(random, 0, 60);
  for (int64_t i = 0; i < layers; ++i)
    add(i == odd ? 2 : 1, "layers." + std::to_string(i), true,
        i == odd ? std::vector<int64_t>{rows, rows}
                 : std::vector<int64_t>{width, width},
        true);
  add(3, "head", false, {rows, width}, false);
  return model;
}

Candidate randomCandidate(const StepModel &model, std::mt19937 &random) {
  constexpr FrameworkKind kinds[] = {
      FrameworkKind::AccelRun, FrameworkKind::Fsdp2,     FrameworkKind::Fsdp1,
      FrameworkKind::Ddp,      FrameworkKind::Deepspeed, FrameworkKind::Single};
  Settings settings;
  settings.executor = kinds[between(random, 0, 5)];
  const bool shards = settings.executor != FrameworkKind::Ddp &&
                      settings.executor != FrameworkKind::Single;
  const auto ranks = [&] { return int64_t(1) << between(random, 0, 6); };
  settings.ranksPerNode = 8;
  if (shards)
    settings.mesh.resize("dp_shard", ranks());
  if (settings.executor != FrameworkKind::Single &&
      settings.executor != FrameworkKind::Deepspeed)
    settings.mesh.resize("dp_replicate", ranks());
  if (between(random, 0, 1))
    settings.param = settings.reduce = plan::DType::BF16;
  if (settings.reduce && between(random, 0, 1))
    settings.reduce = plan::DType::F32;
  settings.accumulation = between(random, 1, 6);
  settings.reduceEachMicroBatch = between(random, 0, 1);
  settings.forwardPrefetch = between(random, 0, 3);
  settings.backwardPrefetch = between(random, 0, 3);
  settings.clipGradients = between(random, 0, 1);
  settings.optimizer = static_cast<OptimizerKernel>(between(random, 0, 2));
  settings.zeroStage = static_cast<int>(between(random, 0, 3));
  const bool sharded = settings.executor == FrameworkKind::Fsdp2 ||
                       settings.executor == FrameworkKind::Fsdp1;
  settings.offloadParameters = sharded && between(random, 0, 4) == 0;
  Candidate candidate = configuredCandidate(model, settings);
  const int variant = static_cast<int>(between(random, 0, 2));
  const int split = static_cast<int>(between(random, 0, 60));
  const bool keep = between(random, 0, 2) == 0;
  for (size_t c = 0; c < candidate.variants.size(); ++c)
    if (model.calls[c].layer) {
      candidate.variants[c] = static_cast<int>(c) < split ? variant : 0;
      candidate.offloadActivations[c] = model.kinds[model.calls[c].kind]
                                                .variants[candidate.variants[c]]
                                                .savedInputBytes > 0 &&
                                        variant == 2 && split % 2 == 0;
      if (keep)
        candidate.reshardAfterForward[c] = false;
    }
  candidate.gradientAsBucketView = between(random, 0, 1);
  if (candidate.executor != FrameworkKind::AccelRun &&
      between(random, 0, 2) == 0) {
    candidate.compiled = candidate.replaysGraphs = true;
    if (!verifyCandidate(model, candidate).empty()) // it accumulates
      candidate.replaysGraphs = false;
  }
  return candidate;
}

Target h100() {
  DiagnosticEngine engine;
  return loadTarget("h100-sxm-80gb", engine).value();
}

} // namespace accel::stepmodels
