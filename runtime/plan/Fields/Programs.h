//===- Programs.h - Fields of programs --------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_FIELDS_PROGRAMS_H
#define ACCEL_RUNTIME_PLAN_FIELDS_PROGRAMS_H

#include "runtime/plan/Fields/Forms.h"
#include "runtime/plan/Fields/Rule.h"

namespace accel::plan {

inline constexpr const char *algorithmNames[] = {"direct", "all_to_all"};

template <typename V> void fields(V &v, Of<V, Value> &value) {
  v.about("value", "An activation, passed between calls");
  v("name", value.name);
  v("type", TensorType{value.dtype, value.shape});
  v.optional("alias", value.alias, -1,
             {.doc = "The value whose storage it shares"});
  v.optional("bytes", value.bytes, defaultBytes(value),
             {.doc = "Default: its own size, aligned to 64; 0 for an alias",
              .high = maxSize});
}

template <typename V>
void fields(V &v, Of<V, ProgramInstruction> &instruction) {
  v.about("program_instruction", "What a rank does next");
  v("kind", instruction.kind);
  v.optional("function", Reference{Named::Function, instruction.function}, -1,
             {.doc = "Name of the function that is called"});
  v.optional("unit", Reference{Named::Unit, instruction.unit}, -1,
             {.doc = "Name of the unit whose buffer, parameters or gradients "
                     "this is about"});
  v.optional("role", instruction.role, defaultRole(instruction.kind),
             {.doc = "Default: what a collective moves, what norm and update "
                     "read, else gathered",
              .stated = instruction.unit >= 0 &&
                        (instruction.kind == ProgramInstructionKind::Alloc ||
                         instruction.kind == ProgramInstructionKind::Free)});
  v.optional("stream", instruction.stream, defaultStream(instruction.kind),
             {.doc = "Default: gathers on gather, reductions on reduce, sends "
                     "on send, offloads on host_out, fetches on host_in, all "
                     "else on compute"});
  v.optional("timepoint", instruction.timepoint, -1,
             {.doc =
                  "Given by the start of a collective or a copy, taken by its "
                  "await"});
  v.optional("accumulate", instruction.accumulate,
             {.doc = "A reduce_scatter that adds to what is there"});
  v.optional("axes", instruction.axes, {.doc = "The group, as mesh axes"});
  v.optional("algorithm", instruction.algorithm,
             {.doc = "Of a reduce_scatter",
              .names = algorithmNames,
              .what = "algorithm"});
  v.optional("shift", instruction.shift, 0,
             {.doc = "Of a send: how many stages further it goes; of a "
                     "receive: how many it has come",
              .low = -1,
              .high = 1});
  v.optional("inputs", instruction.inputs, {.doc = "Values"});
  v.optional("consumed",
             Consumed{instruction.consumed, instruction.inputs.size()},
             {.doc = "Positions in inputs that are given up to the function"});
  v.optional("params", instruction.params,
             {.doc = "Parameters by the function's params, neighbours of one "
                     "unit together"});
  v.optional("gradients", instruction.gradients,
             {.doc = "Where gradients go, by the function's gradients"});
  v.optional("outputs", instruction.outputs,
             {.doc = "Values; -1 is dropped", .low = -1});
  v.optional("draw", instruction.draw, -1,
             {.doc = "Of a function with keys: the number of the call in the "
                     "forward, the same for its backward"});
  v.optional("values", instruction.values,
             {.doc = "Values that a free instruction drops"});
  v.optional("where", instruction.where,
             instruction.unit >= 0 ? v.plan().units[instruction.unit].name
                                   : std::string(),
             {.doc = "Module path, or what it is for; default: the unit's "
                     "name"});
}

template <typename V> void fields(V &v, Of<V, Program> &program) {
  v.about("program", "What a rank does for one kind of micro-batch");
  v("name", program.name);
  v.optional("stage", program.stage, 0,
             {.doc = "Of a pipeline: whose ranks run it"});
  v.optional("chunk", program.chunk, 0, {.doc = "Of those that the stage has"});
  v("inputs", program.inputs,
    {.doc = "Values that are bound before it starts"});
  v.optional("loss", program.loss, -1, {.doc = "Value"});
  v.optional("predictions", program.predictions, -1,
             {.doc = "Value: for each row of the logits the place of the "
                     "largest one"});
  v("peak_bytes", program.peakBytes,
    {.doc = "Predicted: own buffers without workspaces"});
  v("peak_instruction", program.peakInstruction, {.low = -1});
  v("values", program.values, {.line = 4, .rows = true});
  v("instructions", program.instructions, {.line = 4, .rows = true});
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_FIELDS_PROGRAMS_H
