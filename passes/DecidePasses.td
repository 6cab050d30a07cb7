//===- DecidePasses.td - Passes that take a decision -------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each reads a `sharding.request` (what the configuration asks for), asks the
// job's framework (passes/Frameworks) where nothing is asked, and writes one
// typed attribute with its reason. None changes a function.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_DECIDE_PASSES_TD
#define ACCEL_PASSES_DECIDE_PASSES_TD

include "mlir/Pass/PassBase.td"

class Decide<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::accel::sharding::ShardingDialect"];
}

def DecideFrameworkPass : Decide<"decide-framework"> {
  let summary = "decide offload, the optimizer's kernel and gradient buckets as "
                "the framework does";
  let description = [{
    Writes the job's `offload` and `optimizer_step`, DDP's buckets (`ddp`) and
    ZeRO's buffers (`zero`) from the requests "offload", "optimizer", "ddp" and
    "zero". Runs first, since ZeRO's stage decides what is sharded. Does nothing
    for accel-run.
  }];
}

def DecideExpertsPass : Decide<"decide-experts"> {
  let summary = "decide which parameters the ranks of ep share, and for how many "
                "rows their experts have a place";
  let description = [{
    From the request "experts" {axes, imbalance}: writes the `spec` of the
    parameters that the family's `base_model_ep_plan` in transformers shards
    by experts, and the graph's `sharding.experts`. A model without experts, or
    with as many as the axis does not divide, is an error.
  }];
}

def WrapPass : Decide<"wrap"> {
  let summary = "decide which parameters form a unit";
  let description = [{
    Creates the `sharding.unit`s of the request "wrap": by transformer layer
    classes, by parameter count, by module for DeepSpeed, or one unit for the
    whole model. A unit whose parameters are partly frozen becomes two,
    and experts that the ranks of `ep` share are a unit of their own, which is
    sharded over the other axes. The
    problem, its solver and the verifier of its answer are in
    `frontends/ModuleTree/UnitSets.h`.
  }];
}

def PrecisionPass : Decide<"precision"> {
  let summary = "decide the dtypes of each unit";
  let description = [{
    Writes each unit's storage, compute, reduce and output dtype from the
    request "precision" {upcast, param, reduce, output}. A dtype that is not
    asked for is the framework's default in its release.
  }];
}

def ReshardPass : Decide<"reshard"> {
  let summary = "decide which units are freed after the forward";
  let description = [{
    From the request "reshard" {after_forward = true|false, keep = [units that
    stay unsharded all the same], whole}. `whole` units are unsharded between
    steps too. A unit that is not sharded has nothing to
    free, and one whose last use in the forward is next to its first use in the
    backward stays unsharded, since its second unshard could not be hidden.
  }];
}

def AccumulatePass : Decide<"accumulate"> {
  let summary = "decide what gradient accumulation keeps between micro-batches";
  let description = [{
    From the request "accumulation" {steps, keep_unsharded}: gradients are
    reduced after each micro-batch (`reduce_each`), or kept unsharded until the
    last one (`keep_unsharded`, PyTorch's no_sync).
  }];
}

def OptimizerInBackwardPass : Decide<"optimizer-in-backward"> {
  let summary = "decide when the optimizer updates a unit";
  let description = [{
    From the request "update": at the end of the step, or as soon as the unit's
    gradient is reduced (`in_backward`; PyTorch calls it
    optimizer-in-backward). Clipping by the global norm needs all gradients, so
    it moves the update to the end.
  }];
}

def PrefetchPass : Decide<"prefetch"> {
  let summary = "decide how many units are unsharded ahead of their use";
  let description = [{
    From the request "prefetch" {forward, backward}, in units.
  }];
}

def GathersPass : Decide<"gathers"> {
  let summary = "decide how many gathers a backward holds back";
  let description = [{
    From the request "gathers" {held}: how many of a backward's gathers, from
    the first behind those of the loss, start where they are needed. Without a
    request nothing is decided, and each starts as far ahead as `prefetch` says.
  }];
}

def ReductionsPass : Decide<"reductions"> {
  let summary = "decide how many reductions a backward waits for";
  let description = [{
    From the request "reductions" {await}: how many of a backward's reductions,
    from its first, end before the next backward begins. Without a request
    nothing is decided, and each is under way beside the next backward.
  }];
}

def ActivationCheckpointingPass : Decide<"activation-checkpointing"> {
  let summary = "decide the checkpoint mode of each call";
  let description = [{
    From the request "checkpoint": {mode = none, pointwise or full}, or {mode =
    "budget", bytes} (of all layers together; `activation-budget` shares them),
    and {calls = {path = mode, bytes or operations}} for single segments. As in
    Accelerate, `full` and `budget` hold for the layers that the wrap policy
    names; the other segments keep the framework's default. With `every` = N it
    is each Nth of these layers, from the first on.
  }];
}

def DecideLossChunksPass : Decide<"decide-loss-chunks"> {
  let summary = "decide into how many chunks the cross-entropy is cut";
  let description = [{
    From the request "loss" {chunks} or {fused}: the call of the segment that
    ends in the loss gets `sharding.loss`. `fused` takes the chunks that a fused
    linear cross-entropy kernel (Liger Kernel, Hsu et al. 2024) would take.
  }];
}

def ActivationBudgetPass : Decide<"activation-budget"> {
  let summary = "share the activation budget among the calls";
  let description = [{
    Shares the bytes of the request "checkpoint" {mode = "budget", bytes} among
    the calls that `activation-checkpointing` marked `budget`, so that least
    time is spent on recomputing. Runs on joint functions, since it needs what
    each saved tensor costs and spares.
  }];
}

def SelectSavedTensorsPass : Decide<"select-saved-tensors"> {
  let summary = "decide which forward values the backward may read";
  let description = [{
    Marks each forward operation of a joint function with `#aten.save`. The mode
    is that of the call's `checkpoint` attribute, else of `sharding.job`, else
    the option. Calls of one function that differ in mode call variants of it
    afterwards (`@F.full`, ...).
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"pointwise\"",
           "none, pointwise or full, where neither call nor job has a mode">
  ];
  let dependentDialects = ["::accel::aten::AtenDialect",
                           "::accel::sharding::ShardingDialect"];
}

#endif // ACCEL_PASSES_DECIDE_PASSES_TD
