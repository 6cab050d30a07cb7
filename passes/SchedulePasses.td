//===- SchedulePasses.td - Passes on programs --------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_PASSES_TD
#define ACCEL_PASSES_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def CutStagesPass : Pass<"cut-stages", "::mlir::ModuleOp"> {
  let summary = "decide which calls are which stage of a pipeline";
  let description = [{
    Where the mesh has an axis `pp`: consecutive calls become its stages, the
    slowest as fast as it can be by the predicted seconds of forward and
    backward; of several chunks of a rank what they take together counts. A
    `sharding.request "stage_memory"` with `bytes` of a device has the fastest cut
    of those whose stages have room there by what they hold and save in as many
    micro-batches as are in flight, and the fastest of all where none has. Marks calls and units with `sharding.stage`; a unit of which
    stages read different parameters becomes one for each. A parameter that
    several stages read (a tied embedding) is in a unit of the first of them
    and in a copy of it, `sharding.copy_of`, in each other; gradients of both
    are reduced over `pp` as well.

    A `sharding.request "pipeline"` of several `chunks` makes so many stretches of
    calls for each stage, in turns: calls are marked with the number of their
    stretch, units with its rank's stage. A parameter that several chunks of one
    stage read is in one unit of it. One with `split_backward` marks the graph with
    `sharding.split_backward`; of two chunks the second ones are then in the
    opposite order of the stages (zb-v).
    `forwards_first` marks it with `sharding.forwards_first` (gpipe).
  }];
  let options = [
    Option<"target", "target", "std::string", "\"\"",
           "the target that predicts seconds; by default cpu or h100-sxm-80gb, "
           "as the job's device">
  ];
  let dependentDialects = ["::accel::sharding::ShardingDialect"];
}

def SplitBackwardPass : Pass<"split-backward", "::mlir::ModuleOp"> {
  let summary = "part a backward into that of inputs and that of weights";
  let description = [{
    Where the graph has `sharding.split_backward` (zb-h1, zb-v): `@F.backward` keeps
    what gradients of inputs are made of, and `@F.backward.weights` has the
    rest, which makes gradients of parameters. What both need is made once: it
    is a result of the first and an argument of the second, a saved value with
    a number behind those of the forward. Views are made anew. Parameters are
    read by the first alone, so that a unit is gathered once for both: what
    reads one moves there. A function that makes no gradient of an input is
    `@F.backward.weights` as a whole, unless it reads parameters; one that
    makes none of a parameter stays.
  }];
}

def OverlapCollectivesPass
    : Pass<"overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "let operators of a function run beside what ranks exchange";
  let description = [{
    Of each function whose ranks exchange something (tp, cp, sp): a collective that
    something can compute beside is marked `schedule.start`, with the reason, and
    a `schedule.await_exchange` stands before its first reader. Where the first
    reader would wait, operators behind it that need not come first: gradients of
    weights beside the sum of an input's gradient. A collective may start before
    its place, about one and a half times as long before its reader as it takes. Of
    several such orders the one that is fastest by the target's costs is applied, if
    what the function holds at its peak grows by no more than `extra-bytes`; where it
    would, exchanges under way at the peak are not started. Results are the same, to
    the bit. Dispatches of experts' rows ask the host, and
    stay. All ranks run the same function, so that collectives of a group have
    one order.

    ```mlir
    %1 = sharding.all_reduce %0 over ["tp"] {schedule.start = "0.3 ms, beside 2 operators of 0.5 ms"} : tensor<8x64xf32>
    %2 = aten.mm %x, %g : (tensor<64x8xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
    %3 = schedule.await_exchange %1 : tensor<8x64xf32>
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"\"",
           "the target that predicts seconds; by default cpu or h100-sxm-80gb, "
           "as the job's device">,
    Option<"extraBytes", "extra-bytes", "int64_t", "-1",
           "how many bytes more a function may hold at its peak; -1: as many as "
           "the largest tensor that it exchanges">
  ];
  let dependentDialects = ["::accel::schedule::ScheduleDialect"];
}

def LowerToSchedulePass : Pass<"lower-to-schedule", "::mlir::ModuleOp"> {
  let summary = "turn units and segments into programs with buffers and collectives";
  let description = [{
    Writes the programs of an optimizer step and of an evaluation, and the
    functions that they call. Units are unsharded as far ahead as the prefetch
    decision allows, and a reduction runs beside the next backward.
  }];
  let options = [
    Option<"overlap", "overlap", "bool", "true",
           "unshard ahead and reduce beside the backward; without it every "
           "collective is awaited where it starts">
  ];
  let dependentDialects = ["::accel::schedule::ScheduleDialect"];
}

def HoistGathersPass : Pass<"hoist-gathers", "::mlir::ModuleOp"> {
  let summary = "start all-gathers as early as the prefetch decision allows";
  let description = [{
    Each all-gather that overlaps no computation yet starts where the
    `forward`-th (after the loss: `backward`-th) gather before it is awaited. A
    unit that would be freed and gathered again with no call in between stays
    unsharded. The order of gathers does not change. `lower-to-schedule` writes
    programs in which nothing is left to hoist; the pass is for programs from
    elsewhere.
  }];
}

def SinkAwaitsPass : Pass<"sink-awaits", "::mlir::ModuleOp"> {
  let summary = "await reductions where the next one starts";
  let description = [{
    Moves the await of each reduction, and what its unit does after it, down to
    where the next reduction needs its buffers, so that one is in flight while
    the next unit's backward computes. On a hybrid mesh one reduction inside
    shards and one across replicas are in flight at most. The order of
    collectives does not change.
  }];
}

def OffloadActivationsPass : Pass<"offload-activations", "::mlir::ModuleOp"> {
  let summary = "leave what calls save for their backward on the host";
  let description = [{
    Where the job's offload decision has activations: a storage of at least 1024
    bytes (torchtune's `min_offload_size`) that the forward reads last in a call,
    and the backward first in another, is copied to the host's pinned memory once
    the first one is queued, and freed when the next one is. It is fetched while
    the call before the other one runs. What would be away for less than a call
    stays.
  }];
}

def InsertFreesPass : Pass<"insert-frees", "::mlir::ModuleOp"> {
  let summary = "free every activation at its last use";
  let description = [{
    The call that reads an activation last takes it over where its function can
    free it inside; else a `schedule.free` follows that call. Records what calls
    and programs take at their peak.
  }];
}

def VerifySchedulePass : Pass<"verify-schedule", "::mlir::ModuleOp"> {
  let summary = "collectives awaited once, no use after free, recorded peaks true";
  let description = [{
    Each collective is awaited once, nothing is used in flight or after it was
    freed, nothing is freed twice or left behind, collectives have one order,
    bytes agree, and a recorded peak is the timeline's. Changes nothing; fails
    with an error for each problem.
  }];
}

#endif // ACCEL_PASSES_SCHEDULE_PASSES_TD
