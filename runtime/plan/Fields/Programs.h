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

template <typename V> void fields(V &v, Of<V, Step> &step) {
  v.about("step", "What a rank does next");
  v("kind", step.kind);
  v.optional("function", Reference{Named::Function, step.function}, -1,
             {.doc = "Name of the function that is called"});
  v.optional("unit", Reference{Named::Unit, step.unit}, -1,
             {.doc = "Name of the unit whose buffer, parameters or gradients "
                     "this is about"});
  v.optional("role", step.role, defaultRole(step.kind),
             {.doc = "Default: what a collective moves, what norm and update "
                     "read, else gathered",
              .stated = step.unit >= 0 && (step.kind == StepKind::Alloc ||
                                           step.kind == StepKind::Free)});
  v.optional("stream", step.stream, defaultStream(step.kind),
             {.doc = "Default: gathers on gather, reductions on reduce, all "
                     "else on compute"});
  v.optional("timepoint", step.timepoint, -1,
             {.doc = "Given by the start of a collective, taken by its await"});
  v.optional("accumulate", step.accumulate,
             {.doc = "A reduce_scatter that adds to what is there"});
  v.optional("axes", step.axes, {.doc = "The group, as mesh axes"});
  v.optional("algorithm", step.algorithm,
             {.doc = "Of a reduce_scatter",
              .names = algorithmNames,
              .what = "algorithm"});
  v.optional("inputs", step.inputs, {.doc = "Values"});
  v.optional("consumed", Consumed{step.consumed, step.inputs.size()},
             {.doc = "Positions in inputs that are given up to the function"});
  v.optional("params", step.params,
             {.doc = "Parameters by the function's params, neighbours of one "
                     "unit together"});
  v.optional("gradients", step.gradients,
             {.doc = "Where gradients go, by the function's gradients"});
  v.optional("outputs", step.outputs,
             {.doc = "Values; -1 is dropped", .low = -1});
  v.optional("draw", step.draw, -1,
             {.doc = "Of a function with keys: the number of the call in the "
                     "forward, the same for its backward"});
  v.optional("values", step.values, {.doc = "Values that a free step drops"});
  v.optional("where", step.where,
             step.unit >= 0 ? v.plan().units[step.unit].name : std::string(),
             {.doc = "Module path, or what it is for; default: the unit's "
                     "name"});
}

template <typename V> void fields(V &v, Of<V, Program> &program) {
  v.about("program", "What a rank does for one kind of micro-batch");
  v("name", program.name);
  v("inputs", program.inputs,
    {.doc = "Values that are bound before it starts"});
  v.optional("loss", program.loss, -1, {.doc = "Value"});
  v("peak_bytes", program.peakBytes,
    {.doc = "Predicted: own buffers without workspaces"});
  v("peak_step", program.peakStep, {.low = -1});
  v("values", program.values, {.line = 4, .rows = true});
  v("steps", program.steps, {.line = 4, .rows = true});
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_FIELDS_PROGRAMS_H
