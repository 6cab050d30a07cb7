//===- StepModelDump.cpp - A step model and its prediction as JSON --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// step-model-dump CONFIG.yaml MODEL MICRO_BATCH SEQUENCE DEVICE EXECUTOR
// [TARGET [foreach|fused|for-loop [views|fp16|bf16]...]]: what
// passes/FrameworkSteps makes of them, for test/parity. SEQUENCE is N[:TARGET
// LENGTH][+INPUT]... "fp8:RECIPE" converts linear layers. The last are DDP's:
// gradients as views of buckets, and communication hooks. "stages=N:M:TORCH":
// N stages of M micro-batches under 1F1B of that release. "functions": axolotl
// computes the adapter's layers.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BuildModel.h"
#include "passes/Adapters/ApplyAdapter.h"
#include "passes/FrameworkSteps/Buckets.h"
#include "passes/FrameworkSteps/BuildStepModel.h"
#include "passes/FrameworkSteps/DecidedCandidate.h"
#include "passes/FrameworkSteps/Megatron.h"
#include "passes/FrameworkSteps/StepLayout.h"
#include "passes/Frameworks/ExecutorOf.h"
#include "passes/Pipeline/Import.h"
#include "passes/Pipeline/Phases.h"
#include "test/unit/RecordedBytes.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <filesystem>

using namespace accel;
namespace json = llvm::json;

namespace {

/// Of an argument "fp8:tensorwise".
std::optional<Fp8Recipe> fp8Named(const std::string &argument) {
  return argument.rfind("fp8:", 0) == 0 ? parseFp8Recipe(argument.substr(4))
                                        : std::nullopt;
}

template <typename T> json::Array list(const std::vector<T> &values) {
  json::Array result;
  for (const auto &value : values)
    result.push_back(value);
  return result;
}

json::Object dump(const SegmentVariant &v) {
  return json::Object{{"name", v.name},
                      {"saved", v.savedBytes},
                      {"saved_input", v.savedInputBytes},
                      {"saves_input", list<bool>(v.savesInput)},
                      {"saves_output", list<bool>(v.savesOutput)},
                      {"forward_peak", v.forwardPeakBytes},
                      {"backward_peak", v.backwardPeakBytes},
                      {"backward_peak_fresh", v.backwardPeakFreshBytes},
                      {"backward_peak_added", v.backwardPeakAddedBytes},
                      {"parameter_copies", v.parameterCopyBytes},
                      {"forward_s", v.forwardSeconds},
                      {"backward_s", v.backwardSeconds},
                      {"recompute_s", v.recomputeSeconds}};
}

/// What a whole forward leaves for the backward, each value once.
int64_t savedInAll(const StepModel &model) {
  int64_t bytes = 0;
  std::vector<bool> held(model.values.size());
  for (const StepCall &call : model.calls) {
    const SegmentVariant &variant = model.kinds[call.kind].variants.front();
    bytes += variant.savedBytes;
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (variant.savesInput[i])
        held[call.inputs[i]] = true;
    for (size_t i = 0; i < call.outputs.size(); ++i)
      if (variant.savesOutput[i])
        held[call.outputs[i]] = true;
  }
  for (size_t i = 0; i < held.size(); ++i)
    if (held[i])
      bytes += model.values[i].bytes;
  return bytes;
}

json::Object dump(const StepModel &model) {
  json::Array kinds, calls, units;
  for (const SegmentKind &kind : model.kinds) {
    json::Array variants;
    for (const SegmentVariant &variant : kind.variants)
      variants.push_back(dump(variant));
    kinds.push_back(
        json::Object{{"name", kind.name},
                     {"inputs", kind.inputBytes},
                     {"outputs", kind.outputBytes},
                     {"input_gradients", kind.inputGradientBytes},
                     {"parameter_gradients", kind.parameterGradientBytes},
                     {"logits", kind.logitsBytes},
                     {"flops", kind.forwardFlops},
                     {"variants", std::move(variants)}});
  }
  for (const StepCall &call : model.calls)
    calls.push_back(
        json::Object{{"kind", model.kinds[call.kind].name},
                     {"path", call.path},
                     {"layer", call.layer},
                     {"parameters", int64_t(call.parameters.size())}});
  for (const StepUnit &unit : model.units) {
    json::Array names;
    for (int p : unit.parameters)
      names.push_back(model.parameters[p].fqn);
    units.push_back(json::Object{{"name", unit.name},
                                 {"parameters", std::move(names)},
                                 {"reshard", unit.reshardAfterForward}});
  }
  json::Array converted; // linear layers of each function in fp8
  for (const Fp8Seconds &layer : model.fp8)
    converted.push_back(layer.name);
  return json::Object{
      {"fp8", std::move(converted)}, {"kinds", std::move(kinds)},
      {"calls", std::move(calls)},   {"units", std::move(units)},
      {"saved", savedInAll(model)},  {"tokens", model.tokens()},
      {"vocab", model.vocab}};
}

/// Bytes of each unit on the first and the last rank.
json::Array unitBytes(const StepModel &model, const Target &target,
                      const Candidate &candidate) {
  json::Array result;
  StepLayout layout(model, target);
  for (RankClass rank : {RankClass::First, RankClass::Last}) {
    layout.prepare(candidate, rank);
    json::Array units;
    for (const UnitSizes &unit : layout.units)
      units.push_back(json::Object{{"shard", unit.shardStored},
                                   {"cast", unit.cast},
                                   {"gathered", unit.gatherOutput},
                                   {"unsharded", unit.unsharded},
                                   {"gradients", unit.gradients},
                                   {"reduce_input", unit.reduceInput},
                                   {"reduce_output", unit.reduceOutput},
                                   {"states", unit.stateBytes}});
    result.push_back(std::move(units));
  }
  return result;
}

json::Array dumpParameters(const StepModel &model) {
  json::Array result;
  for (const StepParameter &p : model.parameters)
    result.push_back(json::Object{
        {"fqn", p.fqn},
        {"shape", list(p.shape)},
        {"bytes", p.numel() * plan::itemSize(p.dtype)},
        {"gradient",
         p.trainable ? p.numel() * plan::itemSize(p.dtype) : int64_t(0)}});
  return result;
}

/// Bytes of the recorded tensors at their peak, and of their segments.
json::Object dump(const replay::Problem &problem) {
  replay::AllocatorRules growing;
  growing.expandableSegments = true;
  const replay::Result plain = replay::solve(problem, {});
  return json::Object{
      {"peak", bytesAtPeak(problem)},
      {"events", int64_t(problem.events.size())},
      {"reserved", plain.statistics.reservedPeak},
      {"growing", replay::solve(problem, growing).statistics.reservedPeak},
      {"wrong", replay::verify(problem) + replay::verify(problem, {}, plain)}};
}

json::Object dump(const StepPrediction &p) {
  json::Object peak;
  for (int h = 0; h < numHoldings; ++h)
    peak[toString(static_cast<Holding>(h))] = p.atPeak[h];
  json::Array exposed;
  for (const Exposed &e : p.exposed)
    exposed.push_back(json::Object{{"cause", e.cause}, {"s", e.seconds}});
  return json::Object{{"peak", p.peakBytes},
                      {"persistent", p.persistentBytes},
                      {"reserved", p.reservedBytes},
                      {"device", p.deviceBytes},
                      {"host", p.hostBytes},
                      {"at_peak", std::move(peak)},
                      {"where", p.peakWhere},
                      {"step_s", p.stepSeconds},
                      {"compute_s", p.computeSeconds},
                      {"exposed_s", p.exposedSeconds},
                      {"recompute_s", p.recomputeSeconds},
                      {"optimizer_s", p.optimizerSeconds},
                      {"tokens_per_s", p.tokensPerSecondPerDevice},
                      {"exposed", std::move(exposed)}};
}

/// "16", "16:11" with labels of their own length, "16:11+attention_mask" with
/// optional inputs.
huggingface::BuildOptions sizesOf(llvm::StringRef batch,
                                  llvm::StringRef sequence) {
  huggingface::BuildOptions sizes;
  llvm::SmallVector<llvm::StringRef> parts;
  sequence.split(parts, '+');
  auto [length, target] = parts.front().split(':');
  batch.getAsInteger(10, sizes.microBatch);
  length.getAsInteger(10, sizes.sequenceLength);
  target.getAsInteger(10, sizes.targetLength);
  for (llvm::StringRef input : llvm::drop_begin(parts))
    sizes.inputs.insert(input.str());
  return sizes;
}

/// Of an argument "stages=4:8:2.15": cuts the model, and stages stay gathered.
bool cutInStages(llvm::StringRef argument, Candidate &candidate) {
  llvm::SmallVector<llvm::StringRef> parts;
  if (!argument.consume_front("stages="))
    return false;
  argument.split(parts, ':');
  int64_t stages = 1;
  parts[0].getAsInteger(10, stages);
  parts[1].getAsInteger(10, candidate.accumulation);
  candidate.torchVersion = parts[2].str();
  candidate.mesh.axes.insert(candidate.mesh.axes.begin(),
                             {plan::pipelineAxis, stages});
  for (auto &&reshards : candidate.reshardAfterForward)
    reshards = false;
  return true;
}

/// Of a step of DPO: the weights that it is compared with.
std::optional<ReferenceModel> referenceNamed(llvm::StringRef option) {
  return llvm::StringSwitch<std::optional<ReferenceModel>>(option)
      .Case("dpo", ReferenceModel::None)
      .Case("dpo-itself", ReferenceModel::Itself)
      .Case("dpo-second", ReferenceModel::Second)
      .Default(std::nullopt);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 7) {
    llvm::errs() << "usage: step-model-dump CONFIG.yaml MODEL MICRO_BATCH "
                    "SEQUENCE DEVICE EXECUTOR [TARGET [OPTIMIZER "
                    "[views|fp16|bf16|parts|eager|dpo|dpo-itself|"
                    "dpo-second|whole]...]]\n";
    return 64;
  }
  DiagnosticEngine engine;
  LoadOptions load;
  load.modelRequired = false;
  LoadedConfig loaded = loadConfig(argv[1], load, engine);
  auto config = huggingface::readModelConfig(argv[2], engine);
  auto executor = parseExecutor(argv[6]);
  if (!loaded.job || !config || !executor || engine.hasErrors()) {
    llvm::errs() << renderText(engine);
    return 1;
  }
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto sizes = sizesOf(argv[3], argv[4]);
  for (int i = 9; i < argc; ++i)
    sizes.eagerAttention |= std::string(argv[i]) == "eager";
  auto module = huggingface::buildModel(context, *config, sizes, engine);
  if (failed(module))
    return 1;
  const std::string folder = argv[2];
  if (std::filesystem::exists(folder + "/adapter_config.json")) {
    auto adapter = readAdapterConfig(folder, engine);
    for (int i = 9; adapter && i < argc; ++i)
      if (std::string(argv[i]) == "functions")
        adapter->functions = {true, true, true};
    if (!adapter || failed(applyAdapter(**module, *adapter, engine))) {
      llvm::errs() << renderText(engine);
      return 1;
    }
  }
  ImportOptions import;
  import.modelName = "model";
  import.device = argv[5];
  import.microBatch = sizes.microBatch;
  import.sequenceLength = sizes.sequenceLength;
  import.checkpointDtype = config->dtype().value_or(plan::DType::F32);
  import.framework = *executor;
  import.versions.accelerate = loaded.job->accelerate.version;
  if (!loaded.job->accelerate.torchVersion.empty())
    import.versions.torch = loaded.job->accelerate.torchVersion;
  import.ranksPerNode = loaded.job->accelerate.processesPerMachine();
  if (argc >= 9)
    import.optimizerKernel =
        std::string(argv[8]) == "fused"      ? OptimizerKernel::Fused
        : std::string(argv[8]) == "for-loop" ? OptimizerKernel::ForLoop
                                             : OptimizerKernel::Foreach;
  import.adapted = std::filesystem::exists(folder + "/adapter_config.json");
  for (int i = 9; i < argc; ++i) {
    loaded.job->transformersTrainer.value |= std::string(argv[i]) == "trainer";
    loaded.job->reentrantCheckpointing.value |=
        std::string(argv[i]) == "reentrant";
    if (auto reference = referenceNamed(argv[i])) {
      loaded.job->script.trainer = TrainerKind::Dpo;
      loaded.job->script.reference.value = *reference;
    }
    loaded.job->script.wholeLogProbabilities |= std::string(argv[i]) == "whole";
    if (const auto recipe = fp8Named(argv[i]))
      import.fp8Training = Setting<Fp8Training>{.value = {.recipe = *recipe}};
    if (const std::string text = argv[i]; text.rfind("bucket=", 0) == 0)
      import.ddp.bucketBytes = std::stoll(text.substr(7));
    if (std::string(argv[i]) == "compiled" ||
        std::string(argv[i]) == "compiled-layers")
      import.compiledWhole =
          Setting<bool>{.value = std::string(argv[i]) == "compiled"};
  }
  plan::Job training;
  training.optimizer.groups.push_back({});
  if (failed(importJob(**module, *loaded.job, training, import, engine)))
    return 1;
  std::optional<Target> target =
      loadTarget(argc >= 8                       ? argv[7]
                 : std::string(argv[5]) == "cpu" ? "cpu"
                                                 : "h100-sxm-80gb",
                 engine);
  if (!target) {
    llvm::errs() << renderText(engine);
    return 1;
  }
  StepModelOptions options;
  options.target = &*target;
  if (failed(runDecisions(**module)) || failed(runDifferentiation(**module)))
    return 1;
  auto model = buildStepModel(**module, options);
  if (failed(model))
    return 1;
  auto decided = decidedCandidate(**module, *model);
  if (failed(decided))
    return 1;
  json::Object result = dump(*model);
  Candidate candidate = std::move(*decided);
  for (int i = 9; i < argc; ++i)
    if (std::string(argv[i]) == "views")
      candidate.gradientAsBucketView = true;
    else if (std::string(argv[i]) == "parts")
      candidate.lossChunks = fusedLossChunks(*model);
    else if (std::string(argv[i]) != "trainer" &&
             std::string(argv[i]) != "reentrant" &&
             std::string(argv[i]) != "eager" &&
             std::string(argv[i]) != "whole" &&
             std::string(argv[i]) != "functions" &&
             std::string(argv[i]).rfind("compiled", 0) != 0 &&
             std::string(argv[i]).rfind("bucket=", 0) != 0 &&
             !cutInStages(argv[i], candidate) && !fp8Named(argv[i]) &&
             !referenceNamed(argv[i]))
      candidate.commHook = argv[i];
  if (std::string problem = verifyCandidate(*model, candidate);
      !problem.empty()) {
    llvm::errs() << problem << "\n";
    return 1;
  }
  const std::vector<int> ready = gradientOrder(*model);
  std::vector<int64_t> readyBytes;
  json::Array numels, buckets;
  for (int p : ready) {
    numels.push_back(model->parameters[p].numel());
    readyBytes.push_back(model->parameters[p].numel() *
                         plan::itemSize(candidate.dtypes.gradient));
  }
  for (const Bucket &bucket : assignBuckets(
           readyBytes, candidate.firstBucketBytes, candidate.bucketBytes))
    buckets.push_back(list(bucket.tensors));
  result["ready_numels"] = std::move(numels);
  result["buckets"] = std::move(buckets);
  result["parts"] = candidate.lossChunks;
  result["parameters"] = dumpParameters(*model);
  result["unit_bytes"] = unitBytes(*model, *target, candidate);
  StepEvaluator evaluator(*model, *target);
  result["prediction"] = dump(evaluator.evaluate(candidate, true));
  result["folded"] = dump(evaluator.evaluate(candidate));
  if (isPipelined(candidate)) {
    json::Array peaks;
    for (const pipeline::RankTotals &rank :
         simulateStages(*model, *target, candidate).simulation.totals)
      peaks.push_back(rank.peakBytes);
    result["stages"] = std::move(peaks);
  }
  if (const auto recorded = evaluator.record(candidate, 3))
    result["recorded"] = dump(*recorded);
  constexpr int times = 100;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i)
    evaluator.evaluate(candidate);
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  result["evaluate_us"] = took.count() / times * 1e6;
  llvm::outs() << llvm::formatv("{0:2}\n", json::Value(std::move(result)));
  return 0;
}
