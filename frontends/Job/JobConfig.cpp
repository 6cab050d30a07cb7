//===- JobConfig.cpp - job.yaml -------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/JobConfig.h"
#include "frontends/Job/JobReader.h"
#include "runtime/plan/Optimizers.h"

#include <algorithm>

using namespace accel;

const char *accel::toString(DataKind kind) {
  constexpr const char *names[] = {"", "tokens", "text", "npy", "arrays"};
  return names[static_cast<int>(kind)];
}

const char *accel::toString(Checkpointing checkpointing) {
  constexpr const char *names[] = {"pointwise", "full", "none"};
  return names[static_cast<int>(checkpointing)];
}

bool accel::isJobFile(const yaml::Node &root) {
  return root.isMapping() && (root.find("model") || root.find("accelerate"));
}

template <typename T>
static void preset(Setting<T> &setting, T value, const char *key,
                   const char *why = "the default") {
  setting = {std::move(value), Origin::Default, key, {}, why};
}

/// AdamW with its defaults, a constant rate, and no checkpoints.
static void setDefaults(JobConfig &job) {
  using Text = std::string;
  preset(job.model, Text(), "model");
  preset(job.init, InitConfig(), "init", "pretrained if weights are there");
  preset(job.trainable, Text(), "trainable", "all parameters");
  preset(job.data.dtype, Text("uint16"), "data.dtype");
  preset(job.data.shuffle, false, "data.shuffle");
  preset(job.data.seed, int64_t(0), "data.seed");
  preset(job.eval.data.dtype, Text("uint16"), "eval.dtype");
  job.optimizer.setDefaults(*plan::findOptimizer("adamw"));
  preset(job.optimizer.maxGradNorm, 0.0, "optimizer.max_grad_norm",
         "no clipping");
  preset(job.schedule.decay, Text("constant"), "schedule.decay");
  preset(job.checkpoint.stateDict, Text("sharded"), "checkpoint.state_dict");
}

void OptimizerConfig::setDefaults(
    const plan::OptimizerDescription &description) {
  preset(name, std::string(description.name), "optimizer.name");
  preset(lr, description.lr, "optimizer.lr", description.source);
  preset(weightDecay, description.weightDecay, "optimizer.weight_decay",
         description.source);
  values.clear();
}

plan::Optimizer OptimizerConfig::resolved() const {
  plan::Optimizer result;
  result.name = name.value;
  if (const auto *description = plan::findOptimizer(name.value))
    for (const plan::Hyperparameter &parameter : description->hyperparameters)
      if (auto given = values.find(parameter.name); given != values.end())
        plan::setValue(result, parameter.name, given->second.value);
  result.maxGradNorm = maxGradNorm.value;
  result.groups = {{lr.value, weightDecay.value}};
  for (const OptimizerGroupConfig &group : groups)
    result.groups.push_back(
        {group.lr.value.value_or(lr.value),
         group.weightDecay.value.value_or(weightDecay.value)});
  return result;
}

/// Batches that DeepSpeed's section or file gives. Of train_batch_size,
/// micro-batch and accumulation it derives the one that is not given.
static void takeBatches(const AccelerateConfig &accelerate, JobConfig &job) {
  const DeepspeedSettings &zero = *accelerate.deepspeed;
  const int64_t ranks = std::max<int64_t>(*accelerate.numProcesses /
                                              *accelerate.sequenceParallel /
                                              accelerate.mesh->ranksPerSample(),
                                          1);
  const auto &steps = zero.gradientAccumulation, &micro = zero.microBatch,
             &whole = zero.trainBatch;
  if (steps.written() && *steps && **steps >= 1)
    job.accumulation = {**steps, Origin::Written, steps.key, steps.at,
                        steps.why};
  auto sensible = [](int64_t n) { return n >= 1 && n <= int64_t(1) << 30; };
  if (micro.written() && *micro && sensible(**micro))
    job.data.microBatch = {*micro, Origin::Written, micro.key, micro.at,
                           micro.why};
  else if (whole.written() && *whole)
    if (int64_t each = **whole / ranks / *job.accumulation; sensible(each))
      job.data.microBatch = {each, Origin::Derived, whole.key, whole.at,
                             "train_batch_size / ranks / accumulation"};
}

/// Megatron counts micro-batches itself, and clips. What it recomputes is said
/// in one way by accelerate 1.13 and later, in another before.
static void takeMegatron(const AccelerateConfig &accelerate, JobConfig &job) {
  const MegatronSettings &megatron = *accelerate.megatron;
  auto take = [](auto &setting, auto value, const auto &from) {
    setting = {value, from.origin, from.key, from.at, from.why};
  };
  if (const auto &count = megatron.microBatches; *count >= 1)
    take(job.accumulation, *count, count);
  take(job.optimizer.maxGradNorm, *megatron.gradientClipping,
       megatron.gradientClipping);
  const auto &granularity = megatron.recomputeGranularity;
  const auto &activations = megatron.recomputeActivations;
  if (*granularity == "full")
    take(job.activationCheckpointing, Checkpointing::Full, granularity);
  else if (*granularity == "selective")
    take(job.activationCheckpointing, Checkpointing::Pointwise, granularity);
  else
    take(job.activationCheckpointing,
         *activations ? Checkpointing::Pointwise : Checkpointing::None,
         activations);
}

JobConfig accel::defaultJob(AccelerateConfig accelerate) {
  JobConfig job;
  setDefaults(job);
  job.file = accelerate.file;
  job.precision = accelerate.precision;
  const Setting<bool> &full = accelerate.activationCheckpointing;
  job.activationCheckpointing = {
      full.value ? Checkpointing::Full : Checkpointing::Pointwise,
      full.value ? full.origin : Origin::Default, full.key, full.at,
      full.value ? "fsdp_activation_checkpointing recomputes each unit"
                 : "pointwise operators, norms and views are recomputed by "
                   "default: bit-identical and nearly free"};
  if (accelerate.stateDictType.written() &&
      *accelerate.stateDictType == StateDictType::Full)
    job.checkpoint.stateDict = {
        "full", Origin::Derived, accelerate.stateDictType.key,
        accelerate.stateDictType.at, "follows from fsdp_state_dict_type"};
  if (accelerate.deepspeed)
    takeBatches(accelerate, job);
  if (accelerate.megatron)
    takeMegatron(accelerate, job);
  job.accelerate = std::move(accelerate);
  return job;
}

LoadedConfig accel::loadConfig(const std::string &path,
                               const LoadOptions &options,
                               DiagnosticEngine &engine) {
  LoadedConfig result;
  std::unique_ptr<yaml::Document> document =
      yaml::parseFile(path, options.accelerate.texts, engine);
  if (document) {
    const yaml::Node *root = document->root();
    if (!root || !root->isMapping()) {
      engine.error("not-a-mapping", path,
                   !root || root->isNull() ? std::string("the file is empty")
                                           : std::string("the file holds ") +
                                                 yaml::describe(root->kind) +
                                                 ", not keys and values",
                   "write one with `accelerate config`");
    } else if (isJobFile(*root)) {
      result.job = JobReader(path, *root, options, engine).read();
    } else if (std::optional<AccelerateConfig> accelerate = parseAccelerate(
                   path, *root, "", {}, options.accelerate, engine)) {
      result.job = defaultJob(std::move(*accelerate));
    }
  }
  result.outcome = engine.outcome();
  return result;
}

std::optional<Setting<bool>> accel::asksForGraphs(const JobConfig &job) {
  if (*job.script.replaysGraphs)
    return job.script.replaysGraphs;
  const DynamoSettings &dynamo = job.accelerate.dynamo;
  if (!dynamo.compiles() || !usesCudaGraphs(*dynamo.mode))
    return std::nullopt;
  Setting<bool> asked;
  asked.value = true;
  asked.origin = dynamo.mode.origin;
  asked.key = dynamo.mode.key;
  asked.at = dynamo.mode.at;
  return asked;
}
