//===- ReportFigures.cpp - What a report says of a plan -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/ReportFigures.h"

#include "dialects/Sharding/Spec.h"
#include "passes/Cost/ErrorBars.h"
#include "passes/FrameworkSteps/HostRoom.h"
#include "passes/FrameworkSteps/Megatron.h"
#include "passes/Simulate/Time.h"
#include "tools/driver/Inputs/FrozenParts.h"
#include "tools/driver/Inputs/MeshInputs.h"
#include "tools/driver/Session/AccelRunPrediction.h"
#include "tools/driver/Text/Format.h"

namespace accel {

std::string strategyName(const JobConfig &job) {
  const AccelerateConfig &config = job.accelerate;
  std::string name;
  switch (config.strategy.value) {
  case Strategy::Single:
    return "one process";
  case Strategy::Ddp:
    return "DDP";
  case Strategy::Fsdp1:
    name = "FSDP";
    break;
  case Strategy::Fsdp2:
    name = config.deepspeed // executed by accel-run
               ? "ZeRO " + std::to_string(*config.deepspeed->zeroStage)
               : "FSDP2";
    break;
  case Strategy::Other:
    name = config.distributedType.value == DistributedType::MegatronLm
               ? "Megatron-LM"
               : toString(config.distributedType.value);
    break;
  }
  if (name.starts_with("FSDP") && config.mesh->size("dp_replicate") > 1)
    name += " (" + std::to_string(config.mesh->size("dp_replicate")) + " x " +
            // Ranks that share experts shard all else.
            std::to_string(config.mesh->size("dp_shard") *
                           config.mesh->size(plan::expertAxis)) +
            ")";
  const char *joint = " with ";
  for (const char *axis :
       {plan::pipelineAxis, "cp", "sp", "tp", plan::expertAxis})
    if (const int64_t size = std::string_view(axis) == plan::expertAxis
                                 ? ranksOfExperts(job)
                                 : config.mesh->size(axis);
        size > 1) {
      name += joint + std::string(axis) + " " + std::to_string(size);
      joint = " and ";
    }
  return name;
}

void describeInputs(const Session &session, PlanReport &report) {
  report.title = session.inputs->modelName;
  report.strategy = strategyName(session.inputs->job);
  if (!session.inputs->trainer.empty())
    report.strategy += " by " + session.inputs->trainer;
  report.executor = session.inputs->executor;
  report.budgetBytes = session.budgetBytes();
  report.roomBytes = session.roomBytes();
  report.ranksPerNode = session.ranksPerNode;
  report.expertRanks = ranksOfExperts(session.inputs->job);
}

void describeSplits(mlir::ModuleOp module, PlanReport &report) {
  for (auto param : module.getOps<sharding::ParamOp>()) {
    const sharding::SpecAttr spec = param.getSpecAttr();
    if (!spec)
      continue;
    const mlir::RankedTensorType type = param.getTensorType();
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      for (const sharding::ShardedBy &part : sharding::shardedBy(spec, dim))
        report.splits.push_back(
            {param.getFqn().str(), part.axis.str(), dim, type.getDimSize(dim),
             part.pieces,
             spec.getBecause() ? spec.getBecause().getWhy().str() : ""});
  }
}

/// The step on the device and on the host of its rank.
static void judge(const Session &session, FrameworkKind executor,
                  PlanReport &r) {
  if (r.roomBytes)
    r.fits = r.prediction.deviceBytes <= *r.roomBytes;
  const Target &machine = session.machine();
  if (machine.host.memoryBytes <= 0)
    return;
  r.hostBytes = machine.host.memoryBytes;
  r.processBytes = processHostBytes(executor, machine.kind == TargetKind::Cuda);
  r.hostFits = hostHolds(machine, executor, r.prediction.hostBytes);
  if (!*r.hostFits)
    r.fits = false;
}

void useProgramFigures(const Session &session, const plan::Plan &plan,
                       PlanReport &r) {
  r.budgetBytes = session.budgetBytes();
  r.roomBytes = session.roomBytes();
  if (session.target)
    r.mfu = modelFlopsUtilisation(plan, *session.target);
  r.prediction =
      accelRunPrediction(plan, session.targetOrNone(), session.ranksPerNode);
  judge(session, FrameworkKind::AccelRun, r);
  r.hasTime = session.target.has_value();
  if (session.target)
    if (auto step = simulatePipeline(
            plan, TimeModel(plan, *session.target, session.ranksPerNode)))
      r.pipeline = std::move(step->step);
  if (!plan.units.empty()) {
    r.compute = plan.units[0].gather;
    r.reduce = plan.units[0].reduce;
  }
}

void useFrameworkFigures(const Session &session, const plan::Plan &plan,
                         const Advice &advice, PlanReport &r) {
  r.compute = advice.candidate.dtypes.compute;
  r.reduce = advice.candidate.dtypes.reduce;
  if (session.own()) {
    r.prediction.recomputeSeconds =
        recomputeSecondsOf(plan, *advice.model, advice.candidate,
                           advice.configured.recomputeSeconds);
    return;
  }
  r.prediction = advice.configured;
  r.hasTime = session.target.has_value();
  if (session.target && isPipelined(advice.candidate))
    r.pipeline =
        simulateStages(*advice.model, *session.target, advice.candidate);
  judge(session, advice.executor, r);
  r.smallestRank = advice.smallestRank;
  if (session.target && r.prediction.stepSeconds > 0) {
    const auto &tf32 = session.target->tf32;
    const bool rounded =
        session.importing.tf32 && tf32 && r.compute == plan::DType::F32;
    const double peak =
        rounded ? tf32->peakFlops : session.target->peakFlops(r.compute);
    r.mfu = peak > 0 ? modelFlopsPerToken(*advice.model) *
                           r.prediction.tokensPerSecondPerDevice / peak
                     : 0;
  }
}

void addErrorBars(const Session &session, PlanReport &r) {
  constexpr double level = 0.9;
  ErrorBars::Run run = session.predictedRun();
  const ErrorBars bytes(ErrorBars::Figure::Bytes, run);
  const auto predicted = static_cast<double>(r.prediction.deviceBytes);
  const ErrorBars::Interval around = bytes.interval(level);
  r.likelyBytes = {around.low * predicted, around.high * predicted};
  r.measuredAlike = bytes.measured();
  if (r.hasTime) {
    if (r.advice)
      run.tokens = r.advice->model->tokens();
    const ErrorBars seconds(ErrorBars::Figure::Seconds, run);
    const ErrorBars::Interval step = seconds.interval(level);
    r.likelySeconds = {step.low * r.prediction.stepSeconds,
                       step.high * r.prediction.stepSeconds};
  }
  if (!r.fits || !r.budgetBytes || predicted <= 0)
    return;
  r.askedConfidence = session.options.confidence;
  // A host that is too small is another matter.
  if (*r.fits != (r.prediction.deviceBytes <= *r.roomBytes))
    return;
  const double below =
      bytes.below(static_cast<double>(*r.budgetBytes) / predicted);
  r.confidence = r.prediction.deviceBytes <= *r.budgetBytes ? below : 1 - below;
}

/// Without samples or steps to accumulate, nothing says that there is a
/// compute_metrics, and Trainer keeps the loss alone.
static std::optional<KeptLogits> keptLogits(const PlanOptions &options,
                                            const ScriptSettings &script) {
  if (script.evalLossOnly ||
      (!options.evalSamples && !script.evalAccumulation.value &&
       !script.evalEachBatch))
    return std::nullopt;
  return KeptLogits{options.evalSamples, script.evalAccumulation.value,
                    script.evalJoins, script.evalEachBatch};
}

/// PhaseInputs::parts.
static std::vector<int64_t> partsOf(const StepModel &model,
                                    const plan::Mesh &mesh,
                                    const std::vector<SplitParameter> &splits) {
  std::map<std::string, int64_t> parts;
  for (const SplitParameter &split : splits)
    parts.try_emplace(split.fqn, 1).first->second *= mesh.size(split.axis);
  std::vector<int64_t> result;
  for (const StepParameter &parameter : model.parameters) {
    const auto found = parts.find(parameter.fqn);
    result.push_back(found == parts.end() ? 1 : found->second);
  }
  return result;
}

/// What the job holds outside its steps.
void reportPhases(
    const Session &session, const Advice &advice,
    std::function<std::shared_ptr<const DecidedStep>(int64_t)> stepOf,
    PlanReport &shown) {
  const PlanInputs &inputs = *session.inputs;
  if (!inputs.hasPhases())
    return;
  const AccelerateConfig &accelerate = inputs.job.accelerate;
  PhaseInputs in;
  in.ranksPerNode = std::max<int64_t>(1, session.ranksPerNode);
  in.contextBytes = session.target ? session.target->contextBytes : 0;
  in.loaded = inputs.loadedDtype();
  in.checkpoint = inputs.model.dtype().value_or(in.loaded);
  if (const auto &base = inputs.job.quantization) {
    in.format = base->values.format;
    // GPTQ and AWQ are packed by programs of their own, ahead of training.
    in.readsPacked = base->prequantized ||
                     in.format == plan::WeightFormat::Gptq ||
                     in.format == plan::WeightFormat::Awq;
  }
  in.dequantizesExperts = inputs.dequantizesExperts;
  in.rankZeroLoads = accelerate.cpuRamEfficientLoading.value;
  if (accelerate.deepspeed) {
    in.zeroInit = accelerate.deepspeed->zero3Init.value;
    in.gathers16Bit = accelerate.deepspeed->save16BitModel.value;
  }
  in.saved = accelerate.stateDictType.value == StateDictType::Full
                 ? SavedState::Full
                 : SavedState::Sharded;
  if (neverShards(advice.executor))
    in.saved = SavedState::Replicated;
  in.transformers = session.importing.versions.transformers;
  in.bytesText = formatBytes;
  const ScriptSettings &script = inputs.job.script;
  in.savesStates = script.savesStates;
  in.savesCheckpoints = script.savesCheckpoints;
  in.byTrainer = script.given();
  in.evalBatch = script.evalBatch.value;
  in.evaluates = script.evaluates;
  in.keptLogits = keptLogits(session.options, script);
  in.stepOf = std::move(stepOf);
  in.parts = partsOf(*advice.model, *accelerate.mesh, shown.splits);
  PhaseReport &report = shown.phases;
  report.phases = jobPhases(*advice.model, session.machine(), advice.candidate,
                            advice.configured, in);
  report.deviceBytes = shown.budgetBytes;
  report.all = session.options.showPhases;
  if (session.target)
    report.rates.hostBytesPerSecond = session.target->host.bytesPerSecond;
  if (script.collectiveTimeout.value) {
    report.rates.collectiveTimeoutSeconds =
        static_cast<double>(*script.collectiveTimeout.value);
    report.timeoutArgument = "ddp_timeout";
  }
  if (session.options.nodeMemoryBytes)
    report.nodeBytes = session.options.nodeMemoryBytes;
  else if (session.target && session.target->host.memoryBytes > 0)
    report.nodeBytes = session.target->host.memoryBytes * in.ranksPerNode;
}

} // namespace accel
