//===- Functions.h - Fields of functions ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_FIELDS_FUNCTIONS_H
#define ACCEL_RUNTIME_PLAN_FIELDS_FUNCTIONS_H

#include "runtime/plan/Fields/Forms.h"
#include "runtime/plan/Fields/Rule.h"

namespace accel::plan {

template <typename V> void fields(V &v, Of<V, Instruction> &instruction) {
  v.about("instruction", "One operator call");
  v("kind", instruction.kind);
  v("op", instruction.op,
    {.doc = "aten::mm or, with an overload, aten::mm.out"});
  v("args", instruction.args, {.doc = "In the order of the operator's schema"});
  v.optional("results", instruction.results,
             {.doc = "Slots; -1 is not used", .low = -1});
  v.optional("frees", instruction.frees,
             {.doc = "Slots whose last use this is"});
  v.optional("workspace", instruction.workspaceBytes,
             {.doc = "Bytes that the operator allocates and frees inside",
              .high = maxSize});
  v.optional("flops", instruction.flops, {.least = 0});
  v.optional("moved_bytes", instruction.movedBytes,
             {.doc = "Read and written", .least = 0});
  v.optional("where", instruction.where,
             {.doc = "Module path, * where functions are shared"});
}

template <typename V> void fields(V &v, Of<V, Function> &function) {
  v.about("function", "Operators in order, over slots numbered within it");
  v("name", function.name, {.spaced = true});
  v("slots", function.slots, {.line = 4});
  v("inputs", function.inputs,
    {.doc = "Slots: tensors passed by value", .line = 4});
  v("params", NamedSlots{function.params, function.paramNames}, {.line = 4});
  v("gradients", NamedSlots{function.gradients, function.gradientNames},
    {.line = 4});
  v("outputs", function.outputs, {.doc = "Slots", .line = 4});
  v("instructions", function.instructions, {.line = 4, .rows = true});
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_FIELDS_FUNCTIONS_H
