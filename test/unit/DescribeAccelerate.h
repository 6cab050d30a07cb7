//===- DescribeAccelerate.h - A configuration as JSON -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Effective values of an accelerate configuration under names that
// test/parity/accelerate_frontend.py has too.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_DESCRIBEACCELERATE_H
#define ACCEL_TEST_UNIT_DESCRIBEACCELERATE_H

#include "frontends/Accelerate/AccelerateConfig.h"

#include <nlohmann/json.hpp>

namespace accel {

using Json = nlohmann::ordered_json;

inline Json dtype(const std::optional<plan::DType> &d) {
  return d ? Json(plan::toString(*d)) : Json(nullptr);
}

inline Json describe(const AccelerateConfig &c) {
  Json out;
  out["distributed_type"] = toString(*c.distributedType);
  out["strategy"] = toString(*c.strategy);
  out["num_processes"] = *c.numProcesses;
  out["mixed_precision"] = toString(*c.mixedPrecision);
  out["dp_replicate"] = c.mesh->size("dp_replicate");
  out["dp_shard"] = c.mesh->size("dp_shard");
  out["sharding"] = toString(*c.sharding);
  out["reshard"] = *c.reshardAfterForward;
  out["wrap_policy"] = toString(*c.wrapPolicy);
  out["wrap_classes"] = *c.wrapClasses ? Json(**c.wrapClasses) : Json(nullptr);
  out["min_num_params"] = *c.minNumParams;
  out["ignored_modules"] = *c.ignoredModules;
  out["activation_checkpointing"] = *c.activationCheckpointing;
  out["activation_checkpointing_offload"] = *c.activationCheckpointingOffload;
  out["offload_params"] = *c.offloadParams;
  out["backward_prefetch"] = static_cast<int>(*c.backwardPrefetch);
  out["forward_prefetch"] = *c.forwardPrefetch;
  out["state_dict_type"] = toString(*c.stateDictType);
  out["use_orig_params"] = *c.useOrigParams;
  out["sync_module_states"] = *c.syncModuleStates;
  out["cpu_ram_efficient_loading"] = *c.cpuRamEfficientLoading;
  out["param_dtype"] = dtype(c.precision->param);
  out["reduce_dtype"] = dtype(c.precision->reduce);
  out["output_dtype"] = dtype(c.precision->output);
  out["dynamo"] = {{"backend", *c.dynamo.backend},
                   {"mode", *c.dynamo.mode},
                   {"fullgraph", *c.dynamo.fullGraph},
                   {"dynamic", *c.dynamo.dynamic},
                   {"regional", *c.dynamo.regional}};
  if (c.deepspeed) {
    const DeepspeedSettings &d = *c.deepspeed;
    const auto &steps = *d.gradientAccumulation;
    const auto &clip = *d.gradientClipping;
    out["deepspeed"] = {
        {"zero_stage", *d.zeroStage},
        {"offload_optimizer_device", toString(*d.offloadOptimizer)},
        {"offload_param_device", toString(*d.offloadParameters)},
        {"gradient_accumulation_steps", steps ? Json(*steps) : Json("auto")},
        {"gradient_clipping", clip ? Json(*clip) : Json("auto")},
        {"zero3_init_flag", *d.zero3Init},
        {"zero3_save_16bit_model", *d.save16BitModel}};
  }
  if (c.megatron) {
    const MegatronSettings &m = *c.megatron;
    out["megatron"] = {{"tp_degree", *m.tensorParallel},
                       {"pp_degree", *m.pipelineParallel},
                       {"num_micro_batches", *m.microBatches},
                       {"context_parallel_size", *m.contextParallel},
                       {"expert_model_parallel_size", *m.expertParallel},
                       {"expert_tensor_parallel_size", *m.expertTensorParallel},
                       {"sequence_parallelism", *m.sequenceParallelism},
                       {"recompute_activations", *m.recomputeActivations},
                       {"use_distributed_optimizer", *m.distributedOptimizer},
                       {"optimizer_cpu_offload", *m.optimizerCpuOffload},
                       {"use_custom_fsdp", *m.customFsdp},
                       {"gradient_clipping", *m.gradientClipping},
                       {"recompute_granularity", *m.recomputeGranularity},
                       {"recompute_method", *m.recomputeMethod},
                       {"recompute_num_layers", *m.recomputeLayers}};
  }
  return out;
}

} // namespace accel

#endif // ACCEL_TEST_UNIT_DESCRIBEACCELERATE_H
