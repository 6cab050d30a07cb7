//===- Differences.cpp - What executors do otherwise ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Read from accelerate 1.15 (accelerator.py, utils/fsdp_utils.py,
// utils/dataclasses.py), torch 2.15 (distributed/fsdp) and DeepSpeed's
// documentation of zero_optimization.
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert/Differences.h"

#include <cassert>

using namespace accel;
using namespace accel::convert;

namespace {

constexpr const char *same = nullptr;

constexpr Topic topics[] = {
    {"units", "memory",
     "the wrapped layers, and a root with embedding, final norm and head",
     "the wrapped layers, the embedding, [final norm, head], and a root",
     "no units: stage 3 gathers module by module, lower stages keep "
     "parameters whole",
     "no units: every rank holds the whole model"},
    {"output-dtype", "numbers",
     "torch.autocast around the forward, outputs converted to fp32",
     "no autocast: everything in {mp}, outputs too, as the loss where the "
     "model "
     "does not convert them",
     "no autocast: the model itself is cast to {mp}, outputs too",
     "torch.autocast around the forward, outputs converted to fp32"},
    {"reduce-dtype", "numbers", "gradients are reduced in {mp}",
     "gradients are reduced in {mp}", "gradients are reduced in {mp}",
     "gradients are reduced in the dtype of the parameters"},
    {"master-weights", "memory",
     "every flat parameter that requires a gradient becomes fp32, frozen "
     "parameters inside of it as well",
     "trainable parameters become fp32, frozen ones keep their dtype",
     "parameters in {mp}, fp32 masters in the optimizer",
     "parameters keep the dtype in which they are loaded"},
    {"backward-prefetch", "speed", "{prefetch}",
     "the next unit is gathered while one computes",
     "stage 3 prefetches by stage3_prefetch_bucket_size",
     "nothing is gathered"},
    {"forward-prefetch", "speed",
     "the next unit is gathered before the current one starts",
     "the next unit is gathered as far as the CPU runs ahead",
     "stage 3 prefetches by stage3_prefetch_bucket_size",
     "nothing is gathered"},
    {"random-state", "numbers",
     "recomputation restores the random state: the same dropout masks",
     "recomputation does not restore the random state (accelerate 1.15): other "
     "dropout masks",
     same, same},
    {"activation-checkpointing", "memory", "wrapped layers are recomputed",
     "wrapped layers are recomputed",
     "nothing is recomputed unless the script calls "
     "model.gradient_checkpointing_enable()",
     "nothing is recomputed unless the script calls "
     "model.gradient_checkpointing_enable()"},
    {"initial-weights", "numbers", "rank 0 sends its weights to all ranks",
     "each rank keeps its part of its own weights: all ranks must start from "
     "the same seed or files",
     "rank 0 sends its weights to all ranks",
     "rank 0 sends its weights to all ranks"},
    {"optimizer-parameters", "files",
     "the optimizer sees one flat parameter per unit (use_orig_params false)",
     "the optimizer sees each parameter: its state has other names",
     "the optimizer sees each parameter: its state has other names",
     "the optimizer sees each parameter: its state has other names"},
    {"hybrid-groups", "launch",
     "torch shards over as many ranks as a machine has visible devices",
     "sharded over num_processes / num_machines ranks, as written", same, same},
    {"wrap-by-size", "memory",
     "a unit for each subtree of at least fsdp_min_num_params parameters",
     "a unit for each transformer layer: SIZE_BASED_WRAP of FSDP2 wraps lists "
     "of "
     "layers too, which fully_shard refuses",
     same, same},
    {"local-state-dict", "files",
     "one file for each rank, pytorch_model_fsdp_rankR.bin",
     "a folder of torch.distributed.checkpoint, which merge-weights reads",
     same, same},
    {"state-dict", "files", "FSDP's {state}", "FSDP's {state}",
     "DeepSpeed's folder pytorch_model, read by zero_to_fp32.py",
     "model.safetensors on rank 0"},
    {"pinned-memory", "memory", "offloaded parameters in pageable memory",
     "offloaded parameters in pinned memory",
     "optimizer (and with stage 3 parameters) in pinned memory, updated by "
     "DeepSpeedCPUAdam",
     same},
    {"ignored-modules", "launch", "ignored with any torch",
     "ignored with torch 2.7 or newer, else sharded", same, same},
    {"parameters-between-steps", "memory",
     "sharded between steps, whole from forward to backward",
     "sharded between steps, whole from forward to backward",
     "stage 2 keeps them whole at all times, in {mp}", same},
    {"gradient-clipping", "numbers",
     "what the script asks for by clip_grad_norm_",
     "what the script asks for by clip_grad_norm_",
     "at 1.0 always (clip_grad_norm_ of the script does nothing): write "
     "gradient_clipping for another limit",
     "what the script asks for by clip_grad_norm_"},
    {"gradient-accumulation", "memory",
     "accumulate() keeps whole gradients on each rank until the step",
     "accumulate() keeps whole gradients on each rank until the step",
     "DeepSpeed accumulates: each micro-batch is reduced, and backward() takes "
     "the step",
     "accumulate() keeps whole gradients on each rank until the step"},
};

const char *sideOf(const Topic &topic, Executor executor) {
  switch (executor) {
  case Executor::Fsdp1:
    return topic.fsdp1;
  case Executor::Fsdp2:
    return topic.fsdp2;
  case Executor::Deepspeed:
    return topic.deepspeed;
  case Executor::Ddp:
    return topic.ddp;
  }
  return nullptr;
}

std::string fill(std::string text, const AccelerateConfig &config) {
  constexpr const char *prefetch[] = {
      "no unit is gathered ahead of time",
      "the next unit is gathered while one computes",
      "the next unit is gathered after one has computed"};
  for (auto [name, value] :
       {std::pair<std::string, std::string>{
            "{mp}", *config.mixedPrecision == MixedPrecision::Fp8
                        ? "bf16"
                        : toString(*config.mixedPrecision)},
        {"{prefetch}", prefetch[static_cast<int>(*config.backwardPrefetch)]},
        {"{state}", toString(*config.stateDictType)}})
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), value);
  return text;
}

} // namespace

const Topic &accel::convert::findTopic(std::string_view id) {
  for (const Topic &topic : topics)
    if (id == topic.id)
      return topic;
  assert(false && "no such topic");
  return topics[0];
}

std::vector<Difference>
accel::convert::differencesOf(const AccelerateConfig &before, Executor from,
                              Executor to) {
  std::vector<Difference> result;
  auto differ = [&](const char *id) {
    const Topic &topic = findTopic(id);
    const char *old = sideOf(topic, from), *now = sideOf(topic, to);
    if (!old || !now)
      return;
    std::string a = fill(old, before), b = fill(now, before);
    if (a != b)
      result.push_back({topic.id, topic.area, std::move(a), std::move(b)});
  };
  bool sharded = before.sharded(),
       low = *before.mixedPrecision != MixedPrecision::No;
  bool byFsdp = to == Executor::Fsdp1 || to == Executor::Fsdp2;
  differ("units");
  if (low) {
    differ("output-dtype");
    differ("reduce-dtype");
    differ("master-weights");
  }
  differ("backward-prefetch");
  if (from == Executor::Fsdp1 && *before.forwardPrefetch)
    differ("forward-prefetch");
  if (*before.activationCheckpointing) {
    differ("random-state");
    differ("activation-checkpointing");
  }
  bool sends = from == Executor::Fsdp1 && *before.syncModuleStates;
  if (!*before.cpuRamEfficientLoading && to != Executor::Fsdp1 &&
      (sends || from == Executor::Fsdp2))
    differ("initial-weights");
  if (from == Executor::Fsdp1 && !*before.useOrigParams)
    differ("optimizer-parameters");
  if (before.mesh->size("dp_replicate") > 1 && sharded)
    differ("hybrid-groups");
  if (*before.wrapPolicy == WrapPolicy::Size && *before.minNumParams > 0)
    differ("wrap-by-size");
  if (*before.stateDictType == StateDictType::Local)
    differ("local-state-dict");
  if (!byFsdp)
    differ("state-dict");
  if (*before.offloadParams)
    differ("pinned-memory");
  if (!before.ignoredModules->empty())
    differ("ignored-modules");
  if (!*before.reshardAfterForward && sharded)
    differ("parameters-between-steps");
  differ("gradient-clipping");
  differ("gradient-accumulation");
  return result;
}
