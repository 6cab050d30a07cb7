//===- ToFsdp2.cpp - FSDP1 to FSDP2 ---------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert/Converter.h"

using namespace accel;
using namespace accel::convert;

static const std::string fsdp = "fsdp_config";

bool Converter::toFsdp2() {
  if (!put(fsdp, "fsdp_version", Value::integer(2), "asked for") ||
      !shardingToFsdp2() || !meshToFsdp2() || !wrappingToFsdp2())
    return false;

  StateDictType type = *before.stateDictType;
  if (type == StateDictType::Local) {
    if (!put(fsdp, "fsdp_state_dict_type", Value::string("SHARDED_STATE_DICT"),
             "FSDP2 has no LOCAL_STATE_DICT; each rank still writes its part"))
      return false;
  } else if (!before.stateDictType.written() &&
             !put(fsdp, "fsdp_state_dict_type", Value::string(toString(type)),
                  "the default is FULL_STATE_DICT in FSDP1 and "
                  "SHARDED_STATE_DICT in FSDP2"))
    return false;

  return drop(fsdp, "fsdp_backward_prefetch",
              "FSDP2 always gathers the next unit ahead of time") &&
         drop(fsdp, "fsdp_backward_prefetch_policy",
              "no effect since accelerate 1.0") &&
         drop(fsdp, "fsdp_forward_prefetch",
              "FSDP2 has no such setting in a file") &&
         drop(fsdp, "fsdp_sync_module_states",
              *before.cpuRamEfficientLoading
                  ? "fsdp_cpu_ram_efficient_loading sends rank 0's weights"
                  : "FSDP2 has no such setting") &&
         drop(fsdp, "fsdp_use_orig_params",
              "FSDP2 always keeps the parameters as they are");
}

/// By what the job does: FSDP1 never looks at fsdp_reshard_after_forward,
/// although the wizard stores the strategy there.
bool Converter::shardingToFsdp2() {
  const std::string strategy = "fsdp_sharding_strategy",
                    reshard = "fsdp_reshard_after_forward";
  Sharding runs = *before.sharding;
  Value value = Value::boolean(*before.reshardAfterForward);
  if (before.mesh->size("dp_shard") == 1 && *before.numProcesses > 1) {
    std::string why =
        runs == Sharding::NoShard
            ? "NO_SHARD replicates the model on every rank"
            : std::string(toString(runs)) +
                  " with one process on each machine replicates the model";
    return noEquivalent(
        place(fsdp, strategy),
        why + ", which FSDP2 cannot do: Accelerate stops with a ValueError "
              "where dp_shard_size is 1, and any other size shards",
        "--to ddp writes distributed_type: MULTI_GPU, which replicates too; or "
        "write FULL_SHARD or SHARD_GRAD_OP first");
  }
  std::string why = std::string("FSDP2's word for ") + toString(runs);
  if (!has(fsdp, reshard))
    return turnInto(fsdp, strategy, reshard, value, why);
  reportKept();
  if (!has(fsdp, strategy))
    return put(fsdp, reshard, value, why);
  return drop(fsdp, reshard, "FSDP1 ignores it") &&
         turnInto(fsdp, strategy, reshard, value, why);
}

void Converter::reportKept() {
  const std::string key = "fsdp_reshard_after_forward";
  if (*before.strategy != Strategy::Fsdp1 || !has(fsdp, key))
    return;
  const yaml::Node &old = *rewriter.find({fsdp, spellings(fsdp, key).back()});
  const char *runs = toString(*before.sharding);
  std::string asked = yaml::pythonText(old);
  if (asked == runs || (old.kind == yaml::Kind::Bool &&
                        old.boolean == *before.reshardAfterForward))
    return;
  if (old.kind == yaml::Kind::Bool)
    asked = old.boolean ? "FULL_SHARD" : "SHARD_GRAD_OP";
  report(Severity::Warning, "kept-behaviour", place(fsdp, key),
         "the file asks for " + printable(asked) +
             ", which FSDP1 ignores: the job runs " + runs +
             ", and so does the new file",
         "write fsdp_sharding_strategy: " + printable(asked) +
             " and convert again to get what it asks for");
}

/// HYBRID_* are axes of a mesh in FSDP2.
bool Converter::meshToFsdp2() {
  const plan::Mesh &mesh = *before.mesh;
  Sharding runs = *before.sharding;
  bool hybrid =
      runs == Sharding::HybridShard || runs == Sharding::HybridShardZero2;
  if (hybrid && !countsRanks) {
    report(Severity::Error, "missing-key",
           place(fsdp, "fsdp_sharding_strategy"),
           std::string("num_processes is missing, and ") + toString(runs) +
               " becomes a mesh of num_machines x ranks on a machine",
           "add num_processes: N, the total over all machines");
    return false;
  }
  if (hasOtherAxes() || meshSize("dp_replicate") > 1 ||
      meshSize("dp_shard") > 1) {
    // FSDP1 refuses the section, so nothing but the section says what is meant.
    if (hybrid && (meshSize("dp_replicate") != mesh.size("dp_replicate") ||
                   meshSize("dp_shard") != mesh.size("dp_shard")))
      return noEquivalent({"parallelism_config"},
                          std::string("parallelism_config and ") +
                              toString(runs) + " ask for different meshes",
                          "remove one of the two");
    return true;
  }
  if (mesh.size("dp_replicate") > 1)
    return writeMesh(mesh.size("dp_replicate"), mesh.size("dp_shard"),
                     std::string(toString(runs)) + ": " +
                         std::to_string(mesh.size("dp_replicate")) +
                         " machines, each sharding over its " +
                         std::to_string(mesh.size("dp_shard")) + " ranks");
  // A section of ones makes FSDP2 stop: it finds no axis to shard over.
  if (!hasSection("parallelism_config"))
    return true;
  if (!countsRanks || mesh.size("dp_shard") == 1)
    return dropSection("parallelism_config",
                       "all sizes are 1, which FSDP2 refuses");
  return writeMesh(1, mesh.size("dp_shard"),
                   "FSDP2 refuses a parallelism_config whose sizes are all 1");
}

bool Converter::wrappingToFsdp2() {
  bool bySize = *before.wrapPolicy == WrapPolicy::Size;
  bool nothing = *before.wrapPolicy == WrapPolicy::None ||
                 (bySize && *before.minNumParams <= 0);
  if (nothing && *before.activationCheckpointing)
    return noEquivalent(
        place(fsdp, "fsdp_activation_checkpointing"),
        "activation checkpointing without a wrap policy recomputes every "
        "module "
        "by itself in FSDP1, and stops every rank with a TypeError in FSDP2",
        "write fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP first");
  if (nothing || !bySize)
    return true;
  return put(fsdp, "fsdp_auto_wrap_policy",
             Value::string("TRANSFORMER_BASED_WRAP"),
             "SIZE_BASED_WRAP of FSDP2 fails for models with a list of "
             "layers") &&
         drop(fsdp, "fsdp_min_num_params", "only SIZE_BASED_WRAP reads it");
}
