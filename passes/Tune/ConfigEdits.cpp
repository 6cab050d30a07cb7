//===- ConfigEdits.cpp - How an option is said ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/ConfigEdits.h"

#include "passes/Tune/ScriptLines.h"

#include <algorithm>
#include <functional>
#include <map>

namespace accel::tune {
namespace {

std::string count(int64_t n, const std::string &what) {
  return std::to_string(n) + " " + what +
         (n == 1                 ? ""
          : what.ends_with("ch") ? "es"
                                 : "s");
}

std::string boolean(bool b) { return b ? "true" : "false"; }

std::string joined(const std::vector<std::string> &parts) {
  std::string result;
  for (const std::string &part : parts)
    result += (result.empty() ? "" : ",") + part;
  return result;
}

} // namespace

std::string ConfigEditor::beside(const std::string &like,
                                 const std::string &name) {
  size_t dot = like.rfind('.');
  return dot == std::string::npos ? name : like.substr(0, dot + 1) + name;
}

std::string ConfigEditor::inSection(const std::string &section,
                                    const std::string &name) const {
  // Under "accelerate." in a job with inline keys.
  std::string prefix;
  const std::string &known = accelerate.distributedType.key;
  if (size_t dot = known.rfind('.'); dot != std::string::npos)
    prefix = known.substr(0, dot + 1);
  return prefix + section + "." + name;
}

ConfigEdit ConfigEditor::deepspeed(const std::string &yamlKey,
                                   const std::string &jsonKey,
                                   const std::string &value) const {
  const auto &settings = accelerate.deepspeed;
  if (settings && !settings->configFile->empty())
    return {{{(settings->inArguments ? "deepspeed." : "") + jsonKey, value,
              *settings->configFile}},
            ""};
  return {{{inSection("deepspeed_config", yamlKey), value}}, ""};
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

std::string ConfigEditor::uniformVariant(const Point &point) const {
  std::string name;
  for (const LayerGroup &group : space.groups) {
    if (!group.layer)
      continue;
    for (size_t v = 0; v < group.names.size(); ++v) {
      int n = point.counts[group.offset + v];
      if (!n)
        continue;
      if (n != static_cast<int>(group.calls.size()) ||
          (!name.empty() && name != group.names[v]))
        return "";
      name = group.names[v];
    }
  }
  return name;
}

bool ConfigEditor::isSolved(const std::string &name) const {
  for (const LayerGroup &group : space.groups)
    for (size_t v = 0; v < group.names.size(); ++v)
      if (group.names[v] == name && group.solved[v])
        return true;
  return false;
}

std::string ConfigEditor::describeCheckpoint(const Point &point) const {
  std::string name = uniformVariant(point);
  std::string text;
  if (name == "none")
    text = "no activation checkpointing";
  else if (name == "full")
    text = "full activation checkpointing of every layer";
  else if (name == "pointwise")
    text = "norms and pointwise operators recomputed";
  else if (!name.empty())
    text = name + " in every layer";
  else {
    // Layers of all kinds together, those that keep least first.
    std::map<std::pair<size_t, std::string>, int, std::greater<>> layers;
    for (const LayerGroup &group : space.groups)
      for (size_t v = 0; group.layer && v < group.names.size(); ++v)
        if (int n = point.counts[group.offset + v])
          layers[{v, group.names[v]}] += n;
    for (const auto &[way, n] : layers)
      text += (text.empty() ? "activation checkpointing: " : ", ") +
              way.second + " in " + std::to_string(n);
  }
  if (name.empty())
    text += " of " + count(static_cast<int64_t>(space.layers.size()), "layer");
  for (const LayerGroup &group : space.groups)
    for (size_t v = 0; !group.layer && v < group.names.size(); ++v)
      if (point.counts[group.offset + v] &&
          point.counts[group.offset + v] !=
              space.configured.counts[group.offset + v])
        text += ", " + group.names[v] + " in " + group.name;
  return text;
}

std::string describe(const MeshOption &option) {
  std::string text;
  for (const char *axis : {"tp", "pp", "cp"})
    if (const int64_t size = option.mesh.size(axis); size > 1)
      text += std::string(axis) + " " + std::to_string(size) + ", ";
  const int64_t copies = option.mesh.size("dp_replicate"),
                shards = option.mesh.size("dp_shard");
  text += copies > 1 && shards > 1 ? "dp_replicate " + std::to_string(copies) +
                                         ", dp_shard " + std::to_string(shards)
                                   : "dp " + std::to_string(copies * shards);
  if (option.lastLayers)
    text += ", " + count(option.lastLayers, "layer") + " in the last stage";
  if (option.sequence && option.mesh.size("tp") > 1)
    text += " with sequence parallelism";
  return text + ", " + count(option.accumulation, "micro-batch");
}

std::string ConfigEditor::describe(Knob knob, const Point &point) const {
  int all = static_cast<int>(space.layers.size());
  int value = point[knob];
  switch (knob) {
  case Knob::Mesh: {
    const plan::Mesh &mesh = space.mesh(point).mesh;
    if (space.mesh(point).whole() &&
        (executor == FrameworkKind::Megatron ||
         !space.mesh(point).sharesAs(space.mesh(space.configured)))) {
      MeshOption option = space.mesh(point);
      option.accumulation = space.accumulationOf(point);
      return tune::describe(option);
    }
    const int64_t shard = mesh.ranks(plan::AxisRole::Shard);
    const int64_t copies = mesh.ranks(plan::AxisRole::Replicate);
    return copies == 1 ? "sharded over " + count(shard, "rank")
                       : "sharded over " + std::to_string(shard) +
                             ", replicated " + count(copies, "time");
  }
  case Knob::Split: {
    const SplitOption &split = space.splits[value];
    return "micro-batch " + std::to_string(split.microBatch) + ", " +
           std::to_string(space.accumulationOf(point)) + " a step";
  }
  case Knob::Wrap:
    return "a unit is " + space.wraps[value].name;
  case Knob::Precision:
    return space.precisions.empty() ? "" : space.precisions[value].name;
  case Knob::Reshard:
    return value == 0     ? "layers are freed after the forward"
           : value == all ? "layers stay gathered until the backward"
           : value == 1   ? "the last layer stays gathered until the backward"
                          : "the last " + count(value, "layer") +
                                " stay gathered until the backward";
  case Knob::ForwardPrefetch:
    return count(value, "unit") + " gathered ahead in the forward";
  case Knob::BackwardPrefetch:
    return count(value, "unit") + " gathered ahead in the backward";
  case Knob::Checkpoint:
    return describeCheckpoint(point);
  case Knob::Accumulation:
    return value ? "gradients stay unsharded until the last micro-batch"
                 : "gradients are reduced every micro-batch";
  case Knob::ParameterOffload:
    return executor == FrameworkKind::Deepspeed
               ? (value ? "parameters on the host" : "parameters on the device")
           : value ? "parameters and optimizer on the host"
                   : "parameters and optimizer on the device";
  case Knob::OptimizerOffload:
    return value ? "optimizer on the host" : "optimizer on the device";
  case Knob::ActivationOffload:
    return value == 0     ? "saved values stay on the device"
           : value == all ? "the inputs of layers wait on the host"
                          : "those of the first " + count(value, "layer") +
                                " wait on the host";
  case Knob::Bucket:
    return space.buckets.empty()
               ? ""
               : std::to_string(space.buckets[value] >> 20) + " MiB buckets";
  case Knob::Loss:
    return space.lossChunks.empty()   ? ""
           : !space.lossChunks[value] ? "chunked cross-entropy (Liger Kernel)"
           : space.lossChunks[value] == 1
               ? "cross-entropy of all tokens at once"
               : "cross-entropy in " + count(space.lossChunks[value], "chunk");
  case Knob::Optimizer:
    return space.optimizers.empty()
               ? ""
               : "the optimizer " + space.optimizers[value].name;
  case Knob::Reductions:
    return value == 0 ? "reductions run beside the next backward"
           : value >= space.maxReductions
               ? "a backward waits for each reduction"
               : "a backward waits for its first " + count(value, "reduction");
  case Knob::ZeroStage:
    return space.zeroStages.empty()
               ? ""
               : "ZeRO stage " + std::to_string(space.zeroStages[value]);
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

ConfigEdit ConfigEditor::expressReshard(const Point &point) const {
  int kept = point[Knob::Reshard];
  if (kept && kept != static_cast<int>(space.layers.size()))
    return sayByCall(executor, "set_reshard_after_forward(False) of the last " +
                                   count(kept, "layer"));
  bool free = kept == 0;
  if (executor != FrameworkKind::Fsdp1)
    return {{{inFsdp("fsdp_reshard_after_forward"), boolean(free)}}, ""};
  bool hybrid = space.mesh(point).mesh.ranks(plan::AxisRole::Replicate) > 1;
  return {{{inFsdp("fsdp_sharding_strategy"),
            hybrid ? (free ? "HYBRID_SHARD" : "HYBRID_SHARD_ZERO2")
                   : (free ? "FULL_SHARD" : "SHARD_GRAD_OP")}},
          ""};
}

ConfigEdit ConfigEditor::expressWrap(const Point &point) const {
  const WrapOption &wrap = space.wraps[point[Knob::Wrap]];
  std::vector<std::string> names = classes.layers;
  if (wrap.name == "half a layer")
    names.insert(names.end(), classes.blocks.begin(), classes.blocks.end());
  if (wrap.perLayer > 1 || names.empty() ||
      (wrap.name == "half a layer" && classes.blocks.empty()))
    return sayByCall(executor, "fully_shard of " + wrap.name + " a unit");
  return {{{inFsdp("fsdp_auto_wrap_policy"), "TRANSFORMER_BASED_WRAP"},
           {inFsdp("fsdp_transformer_layer_cls_to_wrap"), joined(names)}},
          ""};
}

ConfigEdit ConfigEditor::expressCheckpoint(const Point &point) const {
  std::string name = uniformVariant(point);
  ConfigEdit e = expressCheckpointing(point, name);
  if (!given.layerCheckpointing || name == "full")
    return e;
  // The option goes before every file, so that a line alone changes nothing.
  const std::string without = "accel-opt plan without --gradient-checkpointing";
  const Flags off = {{"--gradient-checkpointing", "off"}};
  if (name == "none" && !accelerate.activationCheckpointing.value)
    return {{}, without, off};
  if (!e.yaml.empty()) {
    e.notExpressibleInYaml = without;
    e.flags = off;
  }
  return e;
}

/// The lines for the variant `name` of all layers, or what says that they
/// differ, as if no option said anything.
ConfigEdit ConfigEditor::expressCheckpointing(const Point &point,
                                              const std::string &name) const {
  const std::vector<std::vector<int>> uniform = space.uniformCounts();
  const bool alike =
      std::find(uniform.begin(), uniform.end(), point.counts) != uniform.end();
  auto byCall = [&] {
    if (!given.trainer.empty() && name == "pointwise")
      return ConfigEdit{
          {}, given.trainer + ": activation_checkpoint.mode=selective"};
    // A uniform setting of pointwise, or layers of which some are.
    const bool selective =
        describeCheckpoint(point).find("pointwise") != std::string::npos;
    return sayByCall(executor, selective
                                   ? "checkpoint_wrapper(context_fn=...)"
                                   : "checkpoint_wrapper of these layers");
  };
  if (executor == FrameworkKind::AccelRun) {
    if (!alike || isSolved(name))
      return byCall();
    if (job.isJob)
      return {{{"activation_checkpointing", name, job.file}}, ""};
    if (name == "none")
      return {{}, "a job.yaml with activation_checkpointing: none"};
    return {
        {{inFsdp("fsdp_activation_checkpointing"), boolean(name == "full")}},
        ""};
  }
  if (executor == FrameworkKind::Megatron)
    return {
        {{inSection("megatron_lm_config", "megatron_lm_recompute_granularity"),
          name == "full" ? "full" : "selective"}},
        ""};
  const bool units =
      executor == FrameworkKind::Fsdp1 || executor == FrameworkKind::Fsdp2;
  if (const auto &every = job.script.checkpointedLayers;
      *every > 1 && alike && name == "full")
    return {{},
            job.script.owner + ": " + every.key + "={\"every_n_layers\": 1}"};
  // What the script does by itself no key of FSDP takes back.
  const bool scripts = !units || *job.script.ownShards ||
                       (name == "none" && *job.script.layerCheckpointing);
  if (job.script.trainer != TrainerKind::None && scripts && alike &&
      (name == "full" || name == "none"))
    return sayCheckpointing(job.script, name == "full");
  if (!units)
    return {{},
            alike && name == "full"
                ? "TrainingArguments: gradient_checkpointing=True"
            : alike && name == "none"
                ? "TrainingArguments: gradient_checkpointing=False"
                : "your script: checkpoint these layers",
            name == "full" && alike ? Flags{{"--gradient-checkpointing", ""}}
                                    : Flags{}};
  if (!alike || (name != "none" && name != "full"))
    return byCall();
  return {{{inFsdp("fsdp_activation_checkpointing"), boolean(name == "full")}},
          ""};
}

ConfigEdit ConfigEditor::expressMesh(const Point &point) const {
  const plan::Mesh &mesh = space.mesh(point).mesh;
  if (executor == FrameworkKind::Megatron)
    return expressMegatron(space.mesh(point));
  if (executor == FrameworkKind::Fsdp1)
    return expressReshard(point);
  const plan::Mesh &configured = space.mesh(space.configured).mesh;
  ConfigEdit expression;
  // The samples of a step stay what they are.
  if (space.accumulationOf(point) != space.splits.front().accumulation)
    expression = expressSplit(point);
  // A size of 1 is said where another one is, or was.
  std::vector<std::pair<std::string, int64_t>> sizes;
  for (const char *axis : {"dp_replicate", "dp_shard", "cp", "tp"})
    if (const int64_t size = mesh.size(axis);
        size > 1 || configured.size(axis) > 1)
      sizes.emplace_back(axis, size);
  std::vector<YamlLine> lines;
  for (const auto &[axis, size] : sizes)
    lines.push_back({inSection("parallelism_config",
                               "parallelism_config_" + axis + "_size"),
                     std::to_string(size)});
  expression.yaml.insert(expression.yaml.begin(), lines.begin(), lines.end());
  return expression;
}

/// The sizes that differ from the configured ones, which may be Accelerate's
/// defaults.
ConfigEdit ConfigEditor::expressMegatron(const MeshOption &option) const {
  const MeshOption &configured = space.mesh(space.configured);
  ConfigEdit expression;
  auto add = [&](const char *key, const std::string &value) {
    expression.yaml.push_back(
        {inSection("megatron_lm_config", std::string("megatron_lm_") + key),
         value});
  };
  for (const auto &[axis, key] :
       {std::pair("tp", "tp_degree"), std::pair("pp", "pp_degree"),
        std::pair("cp", "context_parallel_size")})
    if (const int64_t size = option.mesh.size(axis);
        size != configured.mesh.size(axis))
      add(key, std::to_string(size));
  // Null is as no line: equal stages need none, and a single one may not have
  // it (releases of Megatron-LM divide by the number of other stages).
  if (option.lastLayers != configured.lastLayers)
    add("decoder_last_pipeline_num_layers",
        option.lastLayers ? std::to_string(option.lastLayers) : "null");
  if (option.sequence != configured.sequence)
    add("sequence_parallelism", boolean(option.sequence));
  if (option.accumulation == configured.accumulation)
    return expression;
  // An option goes before the line.
  const std::string steps = std::to_string(option.accumulation);
  add("num_micro_batches", steps);
  if (given.split)
    expression.flags = {{"--grad-accum", steps}};
  return expression;
}

ConfigEdit ConfigEditor::expressSplit(const Point &point) const {
  const SplitOption split = {space.splits[point[Knob::Split]].microBatch,
                             space.accumulationOf(point)};
  const std::string micro = std::to_string(split.microBatch),
                    steps = std::to_string(split.accumulation);
  if (job.isJob && !given.split)
    return {{{"data.micro_batch", micro, job.file},
             {"gradient_accumulation_steps", steps, job.file}},
            ""};
  if (job.script.trainer != TrainerKind::None && !given.split) {
    // A pair of DPO is two sequences.
    const int64_t samples = split.microBatch / job.script.sequencesPerSample;
    ConfigEdit said =
        sayToScript(job.script,
                    {{job.script.names.microBatch, std::to_string(samples)},
                     {job.script.names.accumulation, steps}},
                    {{"--micro-batch", micro}, {"--grad-accum", steps}});
    if (executor == FrameworkKind::Deepspeed)
      for (YamlLine &line : batchLines(split))
        said.yaml.push_back(std::move(line));
    return said;
  }
  if (!given.trainer.empty()) {
    const plan::Mesh &mesh = space.mesh(point).mesh;
    const int64_t samples = split.microBatch * split.accumulation *
                            mesh.ranks() / mesh.ranksPerSample();
    return {{},
            given.trainer + ": training.local_batch_size=" + micro +
                ", training.global_batch_size=" + std::to_string(samples),
            {{"--micro-batch", micro}, {"--grad-accum", steps}}};
  }
  ConfigEdit e = {{},
                  "TrainingArguments: per_device_train_batch_size=" + micro +
                      ", gradient_accumulation_steps=" + steps,
                  {{"--micro-batch", micro}, {"--grad-accum", steps}}};
  if (executor == FrameworkKind::Deepspeed)
    e.yaml = batchLines(split);
  return e;
}

ConfigEdit ConfigEditor::expressLoss(const Point &point) const {
  const int64_t chunks = space.lossChunks[point[Knob::Loss]];
  if (executor != FrameworkKind::AccelRun && chunks != 1 &&
      job.script.trainer != TrainerKind::None && !given.lossChunks)
    return sayToScript(job.script, {{job.script.names.fusedLoss, "true"}},
                       {{"--liger", ""}});
  if (executor != FrameworkKind::AccelRun && chunks == 1)
    return {{}, "your script: the model's own loss", {{"--loss-chunks", "1"}}};
  // All of Liger's kernels, as the argument brings them.
  if (executor != FrameworkKind::AccelRun)
    return {{}, "TrainingArguments: use_liger_kernel=True", {{"--liger", ""}}};
  if (job.isJob && !given.lossChunks)
    return {{{job.lossChunks.key, std::to_string(chunks), job.file}}, ""};
  return {{},
          "accel-opt plan --loss-chunks " + std::to_string(chunks),
          {{"--loss-chunks", std::to_string(chunks)}}};
}

ConfigEdit ConfigEditor::expressPrefetch(Knob knob, const Point &point) const {
  int depth = point[knob];
  if (executor == FrameworkKind::AccelRun)
    return point[Knob::ForwardPrefetch] == point[Knob::BackwardPrefetch]
               ? ConfigEdit{{},
                            depth ? "accel-opt plan --prefetch " +
                                        std::to_string(depth)
                                  : "accel-opt plan --no-prefetch",
                            depth ? Flags{{"--prefetch", std::to_string(depth)}}
                                  : Flags{{"--no-prefetch", ""}}}
               : sayByCall(executor, "");
  if (executor != FrameworkKind::Fsdp1)
    return sayByCall(executor, knob == Knob::ForwardPrefetch
                                   ? "set_modules_to_forward_prefetch"
                                   : "set_modules_to_backward_prefetch");
  if (knob == Knob::ForwardPrefetch)
    return {{{inFsdp("fsdp_forward_prefetch"), boolean(depth)}}, ""};
  return {{{inFsdp("fsdp_backward_prefetch"),
            depth ? "BACKWARD_PRE" : "NO_PREFETCH"}},
          ""};
}

ConfigEdit ConfigEditor::express(Knob knob, const Point &point) const {
  ConfigEdit e = linesOfScript(job, expressKnob(knob, point));
  for (YamlLine &line : e.yaml)
    if (line.file.empty())
      line.file = accelerate.file.empty() ? job.file : accelerate.file;
  return e;
}

ConfigEdit ConfigEditor::expressKnob(Knob knob, const Point &point) const {
  switch (knob) {
  case Knob::Mesh:
    return expressMesh(point);
  case Knob::Split:
    return expressSplit(point);
  case Knob::Wrap:
    return expressWrap(point);
  case Knob::Precision:
    return {{{beside(accelerate.distributedType.key, "mixed_precision"),
              space.precisions[point[knob]].precision}},
            ""};
  case Knob::Reshard:
    return expressReshard(point);
  case Knob::ForwardPrefetch:
  case Knob::BackwardPrefetch:
    return expressPrefetch(knob, point);
  case Knob::Checkpoint:
    return expressCheckpoint(point);
  case Knob::Accumulation: {
    const std::string mode = point[knob] ? "keep_unsharded" : "reduce_each";
    return {{},
            executor == FrameworkKind::AccelRun
                ? "accel-opt plan --accumulation " + mode
                : std::string("your script: GradientAccumulationPlugin("
                              "sync_each_batch=") +
                      (point[knob] ? "False)" : "True)"),
            {{"--accumulation", mode}}};
  }
  case Knob::ParameterOffload:
    if (executor == FrameworkKind::Deepspeed)
      return deepspeed("offload_param_device",
                       "zero_optimization.offload_param.device",
                       point[knob] ? "cpu" : "none");
    return {{{inFsdp("fsdp_offload_params"), boolean(point[knob])}}, ""};
  case Knob::OptimizerOffload:
    return deepspeed("offload_optimizer_device",
                     "zero_optimization.offload_optimizer.device",
                     point[knob] ? "cpu" : "none");
  case Knob::ActivationOffload:
    if (point[knob] && point[knob] != static_cast<int>(space.layers.size()))
      return sayByCall(executor, "offload_wrapper of these layers");
    return {{{inFsdp("fsdp_activation_checkpointing_offload"),
              boolean(point[knob])}},
            ""};
  case Knob::Bucket:
    return {{},
            "your script: DistributedDataParallelKwargs(bucket_cap_mb=" +
                std::to_string(space.buckets[point[knob]] >> 20) + ")",
            {{"--ddp-kwargs",
              "bucket_cap_mb=" +
                  std::to_string(space.buckets[point[knob]] >> 20)}}};
  case Knob::Loss:
    return expressLoss(point);
  case Knob::Reductions:
    return {{{job.awaitReductions.key, std::to_string(point[knob]), job.file}},
            ""};
  case Knob::Optimizer:
    return expressOptimizer(point);
  case Knob::ZeroStage:
    return deepspeed("zero_stage", "zero_optimization.stage",
                     std::to_string(space.zeroStages[point[knob]]));
  }
  return {};
}

std::vector<Knob> ConfigEditor::differences(const Point &from,
                                            const Point &to) const {
  const Knob order[] = {Knob::Mesh,
                        Knob::ZeroStage,
                        Knob::Precision,
                        Knob::Wrap,
                        Knob::Reshard,
                        Knob::Checkpoint,
                        Knob::ActivationOffload,
                        Knob::ParameterOffload,
                        Knob::OptimizerOffload,
                        Knob::Split,
                        Knob::Accumulation,
                        Knob::ForwardPrefetch,
                        Knob::BackwardPrefetch,
                        Knob::Bucket,
                        Knob::Loss,
                        Knob::Optimizer,
                        Knob::Reductions};
  std::vector<Knob> result;
  for (Knob knob : order)
    if (knob == Knob::Checkpoint ? from.counts != to.counts
                                 : from[knob] != to[knob])
      result.push_back(knob);
  return result;
}

std::vector<YamlLine> ConfigEditor::lines(const Point &point,
                                          std::vector<Knob> &notInYaml) const {
  std::vector<YamlLine> result;
  for (Knob knob : differences(space.configured, point)) {
    ConfigEdit e = express(knob, point);
    if (e.yaml.empty())
      notInYaml.push_back(knob);
    for (YamlLine &line : e.yaml)
      if (std::find(result.begin(), result.end(), line) == result.end())
        result.push_back(std::move(line));
  }
  return result;
}

} // namespace accel::tune
