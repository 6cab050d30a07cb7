//===- Plan.h - Fields of the plan ------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_FIELDS_PLAN_H
#define ACCEL_RUNTIME_PLAN_FIELDS_PLAN_H

#include "runtime/plan/Fields/Functions.h"
#include "runtime/plan/Fields/Job.h"
#include "runtime/plan/Fields/Programs.h"
#include "runtime/plan/Fields/Units.h"

namespace accel::plan {

inline constexpr const char *deviceNames[] = {"cpu", "cuda"};
inline constexpr const char *scheduleNames[] = {
    "1f1b", "gpipe", "interleaved-1f1b", "zb-h1", "zb-v"};

template <typename V> void fields(V &v, Of<V, Breakdown> &breakdown) {
  v.about("breakdown", "Bytes at the peak; sums to peak_bytes");
  v("parameters", breakdown.parameters);
  v("gradients", breakdown.gradients);
  v("optimizer", breakdown.optimizer);
  v("activations", breakdown.activations);
  v("logits", breakdown.logits);
  v("gathered", breakdown.gathered);
  v("buffers", breakdown.buffers);
}

template <typename V> void fields(V &v, Of<V, Predicted> &predicted) {
  v.about("predicted", "Memory and time of an optimizer step on one rank");
  v.group("memory", {.line = 2}, [&](auto &memory) {
    memory("peak_bytes", predicted.peakBytes,
           {.doc = "Own buffers and workspaces"});
    memory("own_peak_bytes", predicted.ownPeakBytes,
           {.doc = "Without operator workspaces"});
    memory("persistent_bytes", predicted.persistentBytes,
           {.doc = "Between steps"});
    memory("reserved_bytes", predicted.reservedBytes,
           {.doc = "What the allocator holds"});
    memory.optional("allocated_bytes", predicted.allocatedBytes, int64_t(0),
                    {.doc = "Of a GPU: what max_memory_allocated tells, with "
                            "what operators need inside; default: not known"});
    memory("device_bytes", predicted.deviceBytes,
           {.doc = "With the context of the device"});
    memory.optional("host_bytes", predicted.hostBytes, int64_t(0),
                    {.doc = "Pinned memory of the host; default: none"});
    memory.optional("disk_bytes", predicted.diskBytes, int64_t(0),
                    {.doc = "A rank's file; default: none"});
    memory("breakdown", predicted.breakdown, {.line = 4});
    memory("peak_program", predicted.peakProgram);
    memory("peak_instruction", predicted.peakInstruction, {.low = -1});
    memory("peak_where", predicted.peakWhere);
  });
  v.nullable("time", {.line = 2}, predicted.hasTime, [&](auto &time) {
    time("step_s", predicted.stepSeconds, {.least = 0});
    time("compute_s", predicted.computeSeconds, {.least = 0});
    time("exposed_comm_s", predicted.exposedCommSeconds,
         {.doc = "Communication that computation does not hide", .least = 0});
    time("tokens_per_s", predicted.tokensPerSecond,
         {.doc = "Of all ranks", .least = 0});
  });
}

template <typename V> void fields(V &v, Of<V, Decision> &decision) {
  v.about("decision", "What was chosen, and why");
  v("what", decision.what);
  v("where", decision.where, {.doc = "A unit, a parameter or job"});
  v("choice", decision.choice);
  v("why", decision.why);
  v.optional("file", decision.file,
             {.doc = "Of the line that caused it; default: nobody asked"});
  v.optional("line", decision.line);
  v.optional("column", decision.column);
  v.optional("alternatives", decision.alternatives);
}

/// A program of the step and how often it runs.
template <typename V> void fields(V &v, Of<V, std::pair<int, int64_t>> &part) {
  v.about("repeated", "A program of the step");
  v("program", Reference{Named::Program, part.first});
  v("repeat", part.second, {.low = 1, .high = maxInt});
}

template <typename V> void programsOf(V &v, Of<V, Chunk> &chunk) {
  v("step", chunk.step,
    {.doc = "Programs in order, each for so many micro-batches", .turn = 1});
  v("eval", Reference{Named::Program, chunk.eval},
    {.doc = "The forward-only program", .null = true, .turn = 1});
}

template <typename V> void fields(V &v, Of<V, Chunk> &chunk) {
  v.about("chunk", "What the ranks of a stage do of a further chunk");
  programsOf(v, chunk);
}

template <typename V> void fields(V &v, Of<V, Stage> &stage) {
  v.about("stage", "What the ranks of one stage of a pipeline do");
  programsOf(v, stage);
  v.optional("further", stage.further,
             {.doc = "The other chunks of the model that the stage has"});
  v("order", stage.order,
    {.doc = "Parts of the step's micro-batches as they are run: F2 is the "
            "forward of micro-batch 2, up to the program's pause, B2 its "
            "backward. Where stages have several chunks, F2.1 is that of "
            "chunk 1; S2 awaits what B2 has sent, and U2 updates. By zb-h1 "
            "and zb-v B2 makes the gradients that the stage before reads, and "
            "W2 those of weights",
     .line = 4});
  v("frames", stage.frames,
    {.doc = "Micro-batches between their first part and their last at once, "
            "at most",
     .line = 4});
  v("peak_bytes", stage.peakBytes, {.doc = "Predicted, with workspaces"});
  v("own_peak_bytes", stage.ownPeakBytes,
    {.doc = "Without operator workspaces"});
  v("persistent_bytes", stage.persistentBytes, {.doc = "Between steps"});
  v.optional("busy_s", stage.busySeconds,
             {.doc = "Of a step the computation; the rest is bubble and "
                     "communication",
              .least = 0});
}

template <typename V> void fields(V &v, Of<V, Disk> &disk) {
  v.about("disk", "A file of each rank for what only the update reads");
  v("folder", disk.folder, {.doc = "Where accel-run makes it"});
  v("buffers", disk.buffers,
    {.doc = "In pinned memory of the host, each of the largest unit",
     .low = 1});
  v("read_ahead", disk.readAhead,
    {.doc = "Units to come are read while one is updated"});
  v("write_behind", disk.writeBehind,
    {.doc = "A unit is written while the next one is updated"});
  v("block_bytes", disk.blockBytes, {.doc = "Of one request", .low = 1});
  v("queue_depth", disk.queueDepth,
    {.doc = "Requests at once, of io_uring", .low = 1});
  v("threads", disk.threads,
    {.doc = "That read and write without io_uring", .low = 1});
}

template <typename V> void fields(V &v, Of<V, Offload> &offload) {
  v.about("offload", "What waits in pinned memory of the host");
  v.optional("states", offload.states,
             {.doc = "Optimizer states; units are updated there"});
  v.optional("parameters", offload.parameters,
             {.doc = "Shards, which gathers copy from there"});
  v.optional("activations", offload.activations,
             {.doc = "What calls save for their backward"});
  v.optional("disk", offload.disk, Disk(),
             {.doc = "Default: what waits is in the host's memory"});
}

template <typename V> void fields(V &v, Of<V, Plan> &plan) {
  v.about("plan",
          "What every rank holds, the compute functions, and the "
          "programs that run them. Written by accel-opt plan, executed "
          "by accel-run. Keys that are left out have the stated "
          "default, else they are empty, 0 or false. Sizes are elements "
          "unless a name says bytes.");
  v.version("format", "hash");
  v("generator", plan.generator, {.line = 0});
  v("target", plan.target,
    {.doc = "Name of the target that times were predicted for", .line = 0});
  v("device", plan.device, {.names = deviceNames, .what = "device", .line = 0});
  v("job", plan.job, {.line = 0});
  v.group("mesh", {.line = 0}, [&](auto &mesh) {
    mesh("axes", plan.axes,
         {.doc = "The last axis varies fastest with the rank",
          .items = Named::Axis,
          .spaced = true});
    mesh.check("axes", [&] {
      return plan.ranks() <= maxInt
                 ? ""
                 : "more than " + std::to_string(maxInt) + " ranks";
    });
  });
  v("rank_classes", RankClasses{plan},
    {.doc = "Which ranks run which programs: one class of all ranks, or one "
            "for each stage of a pipeline",
     .turn = 2,
     .line = 0});
  v.optional("offload", plan.offload, Offload(), {.line = 0});
  v.optional("kept_workspace_bytes", plan.keptWorkspaceBytes, int64_t(0),
             {.doc = "What libraries of the job's torch keep from their first "
                     "product on, as cuBLAS up to torch 2.11; default: none",
              .line = 0});
  v("parameters", plan.parameters,
    {.items = Named::Parameter, .turn = 1, .line = 0, .rows = true});
  v("buffers", plan.buffers, {.line = 0, .rows = true});
  v("units", plan.units, {.items = Named::Unit, .line = 0, .rows = true});
  v("functions", plan.functions,
    {.items = Named::Function, .line = 0, .rows = true});
  v("programs", plan.programs,
    {.items = Named::Program, .turn = 1, .line = 0, .rows = true});
  v("step", plan.step,
    {.doc = "The optimizer step: programs in order, each so many times",
     .turn = 1,
     .line = 0});
  v.optional("stages", plan.stages,
             {.doc = "Of a pipeline, by position on the axis pp: step is empty "
                     "then, and eval null",
              .turn = 1,
              .line = 0,
              .rows = true});
  v.optional("schedule", plan.schedule,
             {.doc = "Of a pipeline",
              .names = scheduleNames,
              .what = "schedule",
              .line = 0});
  v("eval", Reference{Named::Program, plan.eval},
    {.doc = "The forward-only program", .null = true, .turn = 1, .line = 0});
  v("predicted", plan.predicted, {.line = 0});
  v("decisions", plan.decisions, {.line = 0, .rows = true});
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_FIELDS_PLAN_H
