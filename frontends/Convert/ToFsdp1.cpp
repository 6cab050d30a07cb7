//===- ToFsdp1.cpp - FSDP2 to FSDP1 ---------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert/Converter.h"

using namespace accel;
using namespace accel::convert;

static const std::string fsdp = "fsdp_config";

bool Converter::toFsdp1() {
  if (*before.activationCheckpointingOffload)
    return noEquivalent(place(fsdp, "fsdp_activation_checkpointing_offload"),
                        "FSDP1 cannot offload activations: every rank stops "
                        "with a ValueError",
                        "write fsdp_activation_checkpointing_offload: false "
                        "first");
  if (*before.wrapPolicy == WrapPolicy::Size && *before.minNumParams > 0)
    return noEquivalent(place(fsdp, "fsdp_auto_wrap_policy"),
                        "SIZE_BASED_WRAP takes whole subtrees in FSDP2 and "
                        "what is left of them "
                        "in FSDP1: the units would be others",
                        "write TRANSFORMER_BASED_WRAP first");
  if (!put(fsdp, "fsdp_version", Value::integer(1), "asked for") ||
      !shardingToFsdp1())
    return false;
  if (!before.stateDictType.written() &&
      !put(fsdp, "fsdp_state_dict_type",
           Value::string(toString(*before.stateDictType)),
           "the default is SHARDED_STATE_DICT in FSDP2 and FULL_STATE_DICT in "
           "FSDP1"))
    return false;
  // What FSDP2 ignores counts again.
  bool sync = *before.cpuRamEfficientLoading;
  const std::string loading = "fsdp_cpu_ram_efficient_loading";
  if (!sync && !put(fsdp, loading, Value::boolean(false),
                    "launch takes a quoted word for true"))
    return false;
  return drop(fsdp, "fsdp_forward_prefetch", "FSDP2 ignored it") &&
         drop(fsdp, "fsdp_backward_prefetch_policy",
              "no effect since accelerate 1.0") &&
         put(fsdp, "fsdp_backward_prefetch", Value::string("BACKWARD_PRE"),
             "what FSDP2 does by itself") &&
         drop(fsdp, "fsdp_use_orig_params",
              "FSDP2 ignored it; the default is true") &&
         (sync ? drop(fsdp, "fsdp_sync_module_states",
                      "FSDP2 ignored it; the default is true")
               : put(fsdp, "fsdp_sync_module_states", Value::boolean(false),
                     "FSDP2 sends no weights without "
                     "fsdp_cpu_ram_efficient_loading"));
}

bool Converter::shardingToFsdp1() {
  const std::string strategy = "fsdp_sharding_strategy",
                    reshard = "fsdp_reshard_after_forward",
                    section = "parallelism_config";
  if (hasOtherAxes())
    return noEquivalent({section},
                        "tensor, context and sequence parallelism need FSDP2",
                        "write sizes of 1 first");
  const plan::Mesh &mesh = *before.mesh;
  bool hybrid = mesh.size("dp_replicate") > 1,
       keeps = *before.reshardAfterForward;
  if (hybrid && mesh.size("dp_shard") != before.processesPerMachine())
    return noEquivalent({section},
                        "HYBRID_SHARD of FSDP1 shards over the " +
                            std::to_string(before.processesPerMachine()) +
                            " ranks of a machine, dp_shard_size is " +
                            std::to_string(mesh.size("dp_shard")),
                        "FSDP1 takes no other groups from a file");
  Sharding runs =
      hybrid ? (keeps ? Sharding::HybridShard : Sharding::HybridShardZero2)
             : (keeps ? Sharding::FullShard : Sharding::ShardGradOp);
  Value value = Value::string(toString(runs));
  std::string why = "FSDP1's word for it";
  if (!dropSection(section, hybrid ? std::string("is ") + toString(runs)
                                   : "FSDP1 shards over all ranks by itself"))
    return false;
  // The strategy that stands in a file for FSDP2 is ignored there.
  if (has(fsdp, reshard))
    return drop(fsdp, strategy, "FSDP2 ignored it") &&
           turnInto(fsdp, reshard, strategy, value, why);
  if (has(fsdp, strategy) || runs != Sharding::FullShard)
    return put(fsdp, strategy, value, why);
  return true;
}
