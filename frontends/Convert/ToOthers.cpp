//===- ToOthers.cpp - FSDP to DeepSpeed and DDP ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert/Converter.h"

using namespace accel;
using namespace accel::convert;

static const std::string fsdp = "fsdp_config", deepspeed = "deepspeed_config",
                         mesh = "parallelism_config";

/// What neither of them can do.
bool Converter::checkForOthers() {
  if (hasOtherAxes())
    return noEquivalent({mesh},
                        "tensor, context and sequence parallelism of a "
                        "parallelism_config need FSDP2",
                        "write sizes of 1 first");
  if (!before.ignoredModules->empty())
    return noEquivalent(place(fsdp, "fsdp_ignored_modules"),
                        "only FSDP leaves modules alone by name",
                        "remove fsdp_ignored_modules first");
  if (*before.activationCheckpointingOffload)
    return noEquivalent(place(fsdp, "fsdp_activation_checkpointing_offload"),
                        "only FSDP2 offloads activations by a key of the file",
                        "remove it first");
  return true;
}

bool Converter::toDdp() {
  if (!checkForOthers())
    return false;
  if (before.sharded())
    return noEquivalent(place(fsdp, "fsdp_sharding_strategy"),
                        "the job shards its parameters over " +
                            std::to_string(before.mesh->size("dp_shard")) +
                            " ranks, and DDP holds all of them on each",
                        "only NO_SHARD means the same in DDP");
  if (*before.offloadParams)
    return noEquivalent(place(fsdp, "fsdp_offload_params"),
                        "DDP cannot offload parameters",
                        "write fsdp_offload_params: false first");
  reportKept();
  return putTop("distributed_type", Value::string("MULTI_GPU"),
                "each rank holds the whole model, gradients are averaged") &&
         dropSection(fsdp, "has no effect with MULTI_GPU") &&
         dropSection(mesh, "each rank holds the whole model");
}

bool Converter::toDeepspeed() {
  if (!checkForOthers())
    return false;
  if (rewriter.find({deepspeed}))
    return noEquivalent({deepspeed},
                        "the file has a deepspeed_config already, which has no "
                        "effect with FSDP",
                        "remove it, or write distributed_type: DEEPSPEED");
  if (before.mesh->size("dp_replicate") > 1 && before.sharded())
    return noEquivalent(
        place(fsdp, "fsdp_sharding_strategy"),
        "hybrid sharding has no key in a deepspeed_config",
        "a DeepSpeed JSON has zero_hpz_partition_size (parameters only) and "
        "mics_shard_size");
  bool replicated = !before.sharded() && *before.numProcesses > 1;
  int64_t stage = replicated ? 0 : *before.reshardAfterForward ? 3 : 2;
  if (replicated && *before.offloadParams)
    return noEquivalent(place(fsdp, "fsdp_offload_params"),
                        "ZeRO stage 0 cannot offload",
                        "write fsdp_offload_params: false first");
  reportKept();
  if (!putTop("distributed_type", Value::string("DEEPSPEED"), "asked for"))
    return false;

  std::string why =
      std::string("ZeRO's word for ") + toString(*before.sharding);
  if (rewriter.find({fsdp})) {
    if (!edited(rewriter.rename({fsdp}, deepspeed), {fsdp},
                {0, "", fsdp, deepspeed, "asked for"}))
      return false;
  } else if (!edited(rewriter.insertSection(
                         deepspeed, {{"zero_stage", Value::integer(stage)}}),
                     {deepspeed},
                     {0, "", "",
                      deepspeed + ": zero_stage " + std::to_string(stage),
                      why})) {
    return false;
  }

  // One line after the other, so that comments stay with what they are about.
  struct Successor {
    const char *from, *to;
    std::optional<Value> value;
  };
  bool offload = *before.offloadParams;
  auto device = [](bool cpu) { return Value::string(cpu ? "cpu" : "none"); };
  std::optional<Value> init, save;
  if (stage == 3) {
    init = Value::boolean(*before.cpuRamEfficientLoading);
    save = Value::boolean(*before.stateDictType == StateDictType::Full);
  }
  const Successor successors[] = {
      {"sharding_strategy", "zero_stage", Value::integer(stage)},
      {"reshard_after_forward", "zero_stage", Value::integer(stage)},
      {"offload_params", "offload_optimizer_device", device(offload)},
      {"cpu_ram_efficient_loading", "zero3_init_flag", init},
      {"state_dict_type", "zero3_save_16bit_model", save},
  };
  Members missing;
  for (const Successor &next : successors) {
    std::string reason = next.to == std::string("zero_stage")
                             ? why
                             : std::string("nearest to fsdp_") + next.from;
    // Either spelling; the section has another name now.
    for (std::string name :
         {"fsdp_" + std::string(next.from), std::string(next.from)}) {
      const yaml::Entry *entry = rewriter.findEntry({deepspeed, name});
      if (!entry || entry->merged)
        continue;
      Change change{0, "", name + ": " + yaml::shortText(*entry->value), "",
                    reason};
      Path old{fsdp, name}, now{deepspeed, next.to};
      bool taken = !next.value || rewriter.find(now), done = false;
      if (taken) {
        done = rewriter.remove({deepspeed, name});
        change.why = next.value ? "is in " + std::string(next.to)
                                : "only ZeRO stage 3 has such a setting";
      } else {
        done = rewriter.rename({deepspeed, name}, next.to) &&
               rewriter.set(now, *next.value);
        change.to = std::string(next.to) + ": " + next.value->text();
      }
      if (!edited(done, old, std::move(change)))
        return false;
    }
    if (next.value && !rewriter.find({deepspeed, next.to}))
      missing.emplace_back(next.to, *next.value);
  }
  if (stage == 3)
    missing.emplace_back("offload_param_device", device(offload));
  // Every rank of each machine is started as for FSDP.
  if (*before.numMachines > 1)
    missing.emplace_back("deepspeed_multinode_launcher",
                         Value::string("standard"));
  for (const auto &[key, value] : missing)
    if (!rewriter.find({deepspeed, key}) &&
        !edited(rewriter.insert({deepspeed}, key, value), {deepspeed, key},
                {0, "", "", key + ": " + value.text(),
                 key == "deepspeed_multinode_launcher"
                     ? "torchrun on each machine, as before"
                 : key == "zero_stage" ? why
                                       : "what the job does now"}))
      return false;

  // What is left of fsdp_config.
  std::vector<std::string> rest;
  for (const yaml::Entry &entry : rewriter.find({deepspeed})->entries)
    if (entry.key->text.starts_with("fsdp_") || !entry.merged)
      rest.push_back(entry.key->text);
  for (const std::string &name : rest) {
    const yaml::Entry *old = source.findEntry({fsdp, name});
    if (!old)
      continue;
    if (!edited(rewriter.remove({deepspeed, name}), {fsdp, name},
                {0, "", name + ": " + yaml::shortText(*old->value), "",
                 "DeepSpeed has no such setting"}))
      return false;
  }
  return dropSection(mesh, "ZeRO shards over all ranks by itself");
}
