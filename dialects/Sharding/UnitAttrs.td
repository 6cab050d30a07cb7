//===- UnitAttrs.td - When units are gathered and reduced ---*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SHARDING_UNITATTRS_TD
#define ACCEL_DIALECTS_SHARDING_UNITATTRS_TD

include "dialects/Sharding/ShardingAttrs.td"

def Sharding_ReshardAttr : Sharding_Attr<"Reshard", "reshard"> {
  let summary = "whether the gathered parameters are freed after the forward";
  let description = [{
    `whole`: nor after the backward. Every rank holds them between steps, beside
    its shard, and they are gathered anew after each update.

    ```mlir
    #sharding.reshard<after_forward = false whole = true, because = <"zero_stage">>
    ```
  }];
  let parameters = (ins "bool":$afterForward,
                        DefaultValuedParameter<"bool", "false">:$whole,
                        "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = [{
    `<` `after_forward` `=` $afterForward (`whole` `=` $whole^)? `,`
        `because` `=` $because `>`
  }];
  let genVerifyDecl = 1;
}

def Sharding_CheckpointMode : I32EnumAttr<"CheckpointMode",
    "which forward values the backward keeps", [
      I32EnumAttrCase<"None", 0, "none">,
      I32EnumAttrCase<"Pointwise", 1, "pointwise">,
      I32EnumAttrCase<"Full", 2, "full">,
      I32EnumAttrCase<"Budget", 3, "budget">,
      I32EnumAttrCase<"Set", 4, "set">]> {
  let cppNamespace = "::accel::sharding";
}

def Sharding_CheckpointAttr : Sharding_Attr<"Checkpoint", "checkpoint"> {
  let summary = "activation checkpointing of a segment";
  let description = [{
    `none` keeps whatever the backward reads, `pointwise` recomputes pointwise
    operators, norms and views and keeps matmul and attention outputs, `full`
    keeps the segment's inputs alone. `budget` keeps what fits in `bytes` so
    that least time is spent on recomputing; without `bytes`, the segment has a
    share of the job's budget that `activation-budget` decides. `set` keeps the
    results of the operations `keep`, counted from the start of the joint
    function. Example:

    ```mlir
    #sharding.checkpoint<budget bytes 1048576, because = <"asked">>
    #sharding.checkpoint<set keep [3, 7], because = <"asked">>
    ```
  }];
  let parameters = (ins
      EnumParameter<Sharding_CheckpointMode>:$mode,
      "::accel::sharding::BecauseAttr":$because,
      DefaultValuedParameter<"int64_t", "-1">:$bytes,
      OptionalArrayRefParameter<"int64_t">:$keep);
  let assemblyFormat = [{
    `<` $mode (`bytes` $bytes^)? (`keep` `[` $keep^ `]`)? `,`
        `because` `=` $because `>`
  }];
  let builders = [AttrBuilder<(ins
      "::accel::sharding::CheckpointMode":$mode,
      "::accel::sharding::BecauseAttr":$because), [{
    return $_get($_ctxt, mode, because, -1, ::llvm::ArrayRef<int64_t>());
  }]>];
  let genVerifyDecl = 1;
}

def Sharding_PrefetchAttr : Sharding_Attr<"Prefetch", "prefetch"> {
  let summary = "how many units are gathered ahead of their first use";
  let parameters = (ins "int64_t":$forward, "int64_t":$backward,
                        "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = [{
    `<` `forward` `=` $forward `,` `backward` `=` $backward `,`
        `because` `=` $because `>`
  }];
  let genVerifyDecl = 1;
}

def Sharding_GathersAttr : Sharding_Attr<"Gathers", "gathers"> {
  let summary = "how many gathers a backward holds back";
  let description = [{
    A unit is gathered ahead of its backward, beside the loss or the backward of
    what comes after it, or is not freed before the loss. The first `held`
    gathers of a micro-batch's backward, behind those that the loss itself
    needs, start where they are needed instead, and nothing runs beside them:
    the loss, whose logits are large, and the first backwards, when most is
    saved, are the peak of many steps. Example:

    ```mlir
    #sharding.gathers<held = 1, because = <"hold_gathers: 1">>
    ```
  }];
  let parameters = (ins "int64_t":$held,
                        "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = [{
    `<` `held` `=` $held `,` `because` `=` $because `>`
  }];
  let genVerifyDecl = 1;
}

def Sharding_ReductionsAttr : Sharding_Attr<"Reductions", "reductions"> {
  let summary = "how many reductions a backward waits for";
  let description = [{
    A unit's gradients are reduced beside the backward of what comes before it,
    and unsharded until then. The first `await` reductions of a micro-batch's
    backward end before the next backward begins instead, so that nothing is
    beside that one: most is saved for the backward then, and the peak of a step
    is often there. Example:

    ```mlir
    #sharding.reductions<await = 2, because = <"await_reductions: 2">>
    ```
  }];
  let parameters = (ins "int64_t":$await,
                        "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = [{
    `<` `await` `=` $await `,` `because` `=` $because `>`
  }];
  let genVerifyDecl = 1;
}

def Sharding_AccumulationMode : I32EnumAttr<"AccumulationMode",
    "what gradient accumulation keeps between micro-batches", [
      I32EnumAttrCase<"ReduceEach", 0, "reduce_each">,
      I32EnumAttrCase<"KeepUnsharded", 1, "keep_unsharded">]> {
  let cppNamespace = "::accel::sharding";
}

def Sharding_AccumulationAttr
    : Sharding_Attr<"Accumulation", "accumulation"> {
  let summary = "gradient accumulation: micro-batches a step, and what is kept";
  let parameters = (ins "int64_t":$steps,
      EnumParameter<Sharding_AccumulationMode>:$mode,
      "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = [{
    `<` $steps `,` $mode `,` `because` `=` $because `>`
  }];
  let genVerifyDecl = 1;
}

def Sharding_UpdateMode : I32EnumAttr<"UpdateMode",
    "when the optimizer updates a unit", [
      I32EnumAttrCase<"AtEnd", 0, "at_end">,
      I32EnumAttrCase<"Inline", 1, "in_backward">]> {
  let cppNamespace = "::accel::sharding";
}

def Sharding_UpdateAttr : Sharding_Attr<"Update", "update"> {
  let summary = "whether a unit is updated as soon as it is reduced";
  let parameters = (ins EnumParameter<Sharding_UpdateMode>:$mode,
                        "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = "`<` $mode `,` `because` `=` $because `>`";
}

def Sharding_WrapAttr : Sharding_Attr<"Wrap", "wrap"> {
  let summary = "why these parameters form a unit";
  let parameters = (ins "::accel::sharding::BecauseAttr":$because);
  let assemblyFormat = "`<` `because` `=` $because `>`";
}

#endif // ACCEL_DIALECTS_SHARDING_UNITATTRS_TD
