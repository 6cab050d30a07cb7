//===- Job.h - Fields of the job --------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_FIELDS_JOB_H
#define ACCEL_RUNTIME_PLAN_FIELDS_JOB_H

#include "runtime/plan/Fields/Rule.h"
#include "runtime/plan/Job.h"
#include "runtime/plan/Optimizers.h"

namespace accel::plan {

inline constexpr const char *precisionNames[] = {"no", "bf16", "fp16"};
inline constexpr const char *dataKinds[] = {"", "tokens", "text", "npy",
                                            "arrays"};
inline constexpr const char *decayNames[] = {"constant",
                                             "linear",
                                             "cosine",
                                             "cosine_with_restarts",
                                             "polynomial",
                                             "inverse_sqrt",
                                             "warmup_stable_decay"};
inline constexpr const char *decayShapes[] = {"linear", "cosine", "1-sqrt"};
inline constexpr const char *epochEnds[] = {"", "drop", "repeat"};
inline constexpr const char *metricNames[] = {"accuracy", "perplexity"};
inline constexpr const char *onNanChoices[] = {"stop", "skip"};
inline constexpr const char *stateDictKinds[] = {"sharded", "full"};

template <typename V> void fields(V &v, Of<V, OptimizerGroup> &group) {
  v.about("optimizer_group", "Parameters that are updated with the same rates");
  v("lr", group.lr, {.doc = "Before the schedule", .least = 0});
  v("weight_decay", group.weightDecay, {.least = 0});
}

/// Those of the optimizer's description, by their names.
template <typename V> void hyperparameters(V &v, Of<V, Optimizer> &optimizer) {
  const OptimizerDescription *description = findOptimizer(optimizer.name);
  if (!description)
    return;
  for (const Hyperparameter &parameter : description->hyperparameters) {
    std::vector<double> numbers = valueOf(optimizer, parameter.name);
    Rule rule = {.doc = parameter.description,
                 .least = parameter.least,
                 .below = parameter.below,
                 .stated = true};
    if (parameter.kind == Hyperparameter::Kind::Number) {
      v.optional(parameter.name, numbers[0], parameter.standard[0], rule);
    } else if (parameter.kind == Hyperparameter::Kind::Numbers) {
      rule.count = parameter.standard.size();
      v.optional(parameter.name, numbers, parameter.standard, rule);
    } else {
      bool flag = numbers[0] != 0;
      v.optional(parameter.name, flag, parameter.standard[0] != 0, rule);
      numbers[0] = flag;
    }
    if constexpr (V::reads)
      setValue(optimizer, parameter.name, numbers);
  }
}

template <typename V> void fields(V &v, Of<V, Optimizer> &optimizer) {
  v.about("optimizer", "How parameters are updated");
  v("name", optimizer.name,
    {.doc =
         "One of runtime/plan/OptimizerDescriptions.cpp, which also says what "
         "hyperparameters it has"});
  const OptimizerDescription *description = findOptimizer(optimizer.name);
  v.check("name", [&] {
    return description ? "" : "unknown optimizer '" + optimizer.name + "'";
  });
  hyperparameters(v, optimizer);
  v.check("", [&] {
    const char *conflict =
        description->conflict ? description->conflict(optimizer) : nullptr;
    return std::string(conflict ? conflict : "");
  });
  v("max_grad_norm", optimizer.maxGradNorm,
    {.doc = "0: no clipping", .least = 0});
  v("groups", optimizer.groups);
}

template <typename V> void fields(V &v, Of<V, LrSchedule> &schedule) {
  v.about("schedule", "The factor of every group's lr by optimizer step");
  v("steps", schedule.steps, {.doc = "Optimizer steps of the job"});
  v("warmup_steps", schedule.warmupSteps,
    {.doc = "The first of them, with a linear warmup"});
  v("decay", schedule.decay, {.names = decayNames, .what = "decay"});
  v("min_lr", schedule.minLr,
    {.doc = "Where a decay ends, of the first group's lr", .least = 0});
  v.optional("cycles", schedule.cycles, int64_t(1),
             {.doc = "Of cosine_with_restarts", .low = 1, .high = maxInt});
  v.optional("power", schedule.power, 1.0,
             {.doc = "Of polynomial", .least = 0});
  v.optional("decay_steps", schedule.decaySteps,
             {.doc = "Of warmup_stable_decay: the last of the steps"});
  v.optional("decay_shape", schedule.decayShape, std::string("cosine"),
             {.doc = "Of these steps", .names = decayShapes, .what = "shape"});
  v.optional("timescale", schedule.timescale,
             {.doc = "Of inverse_sqrt; 0: warmup_steps, or 10,000 without"});
}

template <typename V> void fields(V &v, Of<V, GradScaler> &scaler) {
  v.about("grad_scaler", "The scale of the loss, as torch.amp.GradScaler's");
  v("init_scale", scaler.initScale, {.least = 1e-300});
  v("growth_factor", scaler.growthFactor, {.least = 1});
  v("backoff_factor", scaler.backoffFactor, {.least = 1e-300, .below = 1});
  v("growth_interval", scaler.growthInterval, {.low = 1});
}

template <typename V> void fields(V &v, Of<V, DataFile> &file) {
  v.about("data_file", "A file of tokens, one of several");
  v("path", file.path, {.doc = "Absolute, or relative to this file"});
  v.optional("weight", file.weight,
             {.doc = "Share of the samples; 0: as many as it has", .least = 0});
  v.optional("starts", file.starts,
             {.doc = ".npy of the positions of documents' first tokens"});
}

template <typename V> void fields(V &v, Of<V, Sampling> &sampling) {
  v.about("sampling", "Texts that the model writes at an evaluation");
  v("count", sampling.count, {.doc = "0: none", .high = maxInt});
  v("prompt_tokens", sampling.promptTokens,
    {.doc = "Of a sample of the evaluation's data", .low = 1, .high = maxInt});
  v("new_tokens", sampling.newTokens, {.low = 1, .high = maxInt});
}

template <typename V> void fields(V &v, Of<V, Data> &data) {
  v.about("data", "Where samples come from; empty: nowhere");
  v.optional("kind", data.kind, {.names = dataKinds, .what = "kind of data"});
  v.optional("path", data.path, {.doc = "Absolute, or relative to this file"});
  v.optional("arrays", data.arrays, {.doc = ".npy files by input"});
  v.optional("files", data.files, {.doc = "Of tokens, in place of path"});
  v.optional("dtype", data.dtype, "uint16", {.doc = "Of tokens"});
  v.optional("shuffle", data.shuffle);
  v.optional("seed", data.seed, {.doc = "Of the order of samples"});
  v.optional("end_of_document", data.endOfDocument, int64_t(-1),
             {.doc = "Documents end with this token, and no token sees "
                     "another document; -1: no token ends one",
              .low = -1});
  v.optional("epoch_end", data.epochEnd,
             {.doc = "What fills the last micro-batches of an epoch: samples "
                     "of the next one, nothing (drop), or its first samples "
                     "(repeat)",
              .names = epochEnds,
              .what = "end of an epoch"});
}

template <typename V> void fields(V &v, Of<V, Checkpoint> &checkpoint) {
  v.about("checkpoint", "What is written for a later start");
  v("dir", checkpoint.dir, {.doc = "Empty: nothing is written"});
  v("every", checkpoint.every,
    {.doc = "In optimizer steps; 0: after the last alone"});
  v("keep", checkpoint.keep, {.doc = "The newest so many; 0: all"});
  v("state_dict", checkpoint.stateDict,
    {.names = stateDictKinds, .what = "state dict"});
  v.optional("background", checkpoint.background,
             {.doc = "Written from a copy while training goes on"});
}

template <typename V> void fields(V &v, Of<V, InputLimit> &input) {
  v.about("input_limit", "Integers of an input are in [0, limit)");
  v("name", input.name);
  v("limit", input.limit, {.low = 1, .high = maxInt});
}

template <typename V> void fields(V &v, Of<V, Job> &job) {
  v.about("job", "What accel-run does beside running programs");
  v.group("model", {.line = 2}, [&](auto &model) {
    model("name", job.modelName);
    model("path", job.modelPath, {.doc = "Folder with config.json"});
    model.optional("weights", job.weightFiles,
                   {.doc = "safetensors or .pt2 to start from"});
    model.optional("archive", job.archive,
                   {.doc = ".pt2 with the values of buffers"});
    model.optional("adapter_config", job.adapterConfig,
                   {.doc = "Text of the adapter_config.json that is written "
                           "beside the adapter's weights"});
  });
  v("seed", job.seed, {.doc = "Of initial values"});
  v.optional("random_seed", job.randomSeed,
             {.doc = "What random operators draw by"});
  v("precision", job.precision, {.names = precisionNames, .what = "precision"});
  v.optional("loss_scaling", job.lossScaling);
  v.optional("grad_scaler", job.gradScaler, GradScaler(),
             {.doc = "Of loss scaling"});
  v.optional("on_nan", job.onNan, std::string("stop"),
             {.doc = "At a step whose loss or gradients are not finite",
              .names = onNanChoices,
              .what = "choice"});
  v.optional("deterministic", job.deterministic,
             {.doc = "Kernels that give the same bits each time"});
  v("micro_batch", job.microBatch,
    {.doc = "Samples on one rank", .low = 1, .high = maxInt});
  v("sequence_length", job.sequenceLength,
    {.doc = "Tokens of a sample; 0: samples have no tokens", .high = maxInt});
  v("vocab", job.vocab, {.high = maxInt});
  v.optional("input_limits", job.inputLimits,
             {.doc = "Integers of this input are below the limit; default for "
                     "input_ids and labels: vocab",
              .low = 1,
              .high = maxInt});
  v("gradient_accumulation_steps", job.accumulation,
    {.low = 1, .high = maxInt});
  v("optimizer", job.optimizer, {.line = 2});
  v("schedule", job.schedule, {.line = 2});
  v("data", job.data, {.line = 2});
  v.group("eval", {.line = 2}, [&](auto &eval) {
    eval("every", job.evalEvery,
         {.doc = "In optimizer steps; 0: at the end alone", .spaced = true});
    eval("batches", job.evalBatches, {.spaced = true});
    eval("data", job.evalData, {.spaced = true});
    eval.optional(
        "metrics", job.evalMetrics,
        {.doc = "Beside the loss", .names = metricNames, .what = "metric"});
    eval.optional("predictions", job.evalPredictions,
                  {.doc = "A file of JSON lines: labels and predictions"});
    eval.optional("sampling", job.sampling, Sampling());
  });
  v.optional("collective_timeout", job.collectiveTimeout,
             {.doc = "Seconds after which a collective that a rank did not "
                     "enter ends the job; 0: accel-run's default"});
  v.optional("logging_steps", job.loggingSteps, int64_t(1),
             {.doc = "Optimizer steps of a line of the log, of which numbers "
                     "are reduced over the ranks; default 1",
              .low = 1,
              .high = maxInt});
  v("checkpoint", job.checkpoint, {.line = 2});
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_FIELDS_JOB_H
