//===- Units.h - Fields of parameters, buffers and units --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_FIELDS_UNITS_H
#define ACCEL_RUNTIME_PLAN_FIELDS_UNITS_H

#include "runtime/plan/Fields/Forms.h"
#include "runtime/plan/Fields/Rule.h"

namespace accel::plan {

template <typename V> void fields(V &v, Of<V, Axis> &axis) {
  v.about("axis", "One named dimension of the mesh of ranks");
  v("name", axis.name);
  v("size", axis.size, {.low = 1, .high = maxInt});
}

template <typename V> void fields(V &v, Of<V, AxisSplit> &split) {
  v.about("axis_split", "A dimension that the ranks of an axis share");
  v("axis", split.axis);
  v("dim", split.dim, {.high = maxInt});
  v.optional("pieces", split.pieces, int64_t(1),
             {.doc = "Equal pieces of the dimension, of each of which a rank "
                     "has its part",
              .low = 1,
              .high = maxInt});
}

template <typename V> void fields(V &v, Of<V, Parameter> &parameter) {
  v.about("parameter", "A tensor of the model, trained or frozen");
  v("fqn", parameter.fqn, {.doc = "As named_parameters() spells it"});
  v.optional("aliases", parameter.aliases,
             {.doc = "Other names of a tied parameter"});
  v.optional("stored", parameter.stored,
             {.doc = "Tensors of a checkpoint that make up the parameter, if "
                     "not one under its name. With * in the names: one set of "
                     "them for each index of the first dimension, each an "
                     "equal part of the second"});
  v.optional("base_names", parameter.baseNames,
             {.doc = "Its name and aliases in the model without the adapter, "
                     "under which its weight files have it, or without the "
                     "prefix of a base model that they hold alone; an empty "
                     "name first says that they need not have it. Default: fqn "
                     "and aliases"});
  v.optional("adapter_key", parameter.adapterKey,
             {.doc = "Name in the adapter's weight file; default: not in it"});
  v("shape", parameter.shape, {.doc = "Global", .high = maxSize});
  v.optional("split", parameter.split,
             {.doc = "Of these dimensions functions and the unit's buffer have "
                     "one rank's part; default: none"});
  v.check("stored", [&] {
    return storedParts(parameter.fqn, parameter.stored, parameter.shape)
               ? ""
               : "these names do not fit the shape of '" + parameter.fqn + "'";
  });
  v("dtype", parameter.dtype, {.doc = "In which checkpoints are written"});
  v("placements", Placements{parameter}, {.doc = "By mesh axis", .turn = 1});
  v.optional("trainable", parameter.trainable, true);
  v.optional("group", parameter.group, {.doc = "Optimizer group"});
  v("unit", Reference{Named::Unit, parameter.unit},
    {.doc = "Name of its unit"});
  v("offset", parameter.offset,
    {.doc = "In the unit's flat buffer, in elements", .high = maxSize});
  v.optional("init", parameter.init,
             {.doc = "First value where no weights are read; default: zeros"});
}

template <typename V> void fields(V &v, Of<V, Buffer> &buffer) {
  v.about("buffer", "A tensor of the model that is not trained");
  v("fqn", buffer.fqn, {.doc = "As named_buffers() spells it"});
  v("shape", buffer.shape, {.high = maxSize});
  v("dtype", buffer.dtype);
  v("persistent", buffer.persistent, {.doc = "Part of the checkpoint"});
}

template <typename V> void fields(V &v, Of<V, State> &state) {
  v.about("state", "An optimizer state, of the unit's shard");
  v("name", state.name);
  v("dtype", state.dtype);
}

template <typename V> void fields(V &v, Of<V, Unit> &unit) {
  v.about("unit", "Parameters in one flat buffer, gathered and reduced "
                  "together");
  v("name", unit.name, {.doc = "FQN of the module; empty: the root"});
  v("shard_axes", unit.shardAxes, {.doc = "Empty: every rank holds all of it"});
  v("replicate_axes", unit.replicateAxes,
    {.doc = "Gradients are all-reduced over them"});
  v.group("dtypes", {}, [&](auto &dtypes) {
    dtypes("storage", unit.storage, {.doc = "The shard and its gradient"});
    dtypes("gather", unit.gather, {.doc = "The gathered buffer"});
    dtypes("compute", SameDType{unit.gather, "compute", "gather"}, {.turn = 1});
    dtypes("grad", SameDType{unit.reduce, "grad", "reduce"}, {.turn = 1});
    dtypes("reduce", unit.reduce, {.doc = "The gradient buffer on the wire"});
  });
  v.optional("trainable", unit.trainable, true);
  v.optional("stage", unit.stage, 0,
             {.doc = "Of a pipeline: whose ranks hold it"});
  v.optional("copy_of", Reference{Named::Unit, unit.copyOf}, -1,
             {.doc = "Name of the unit of an earlier stage whose parameters "
                     "this stage reads too; gradients are all-reduced among "
                     "the stages that have them"});
  v.optional("whole", unit.whole, false,
             {.doc = "Every rank holds the gathered buffer between steps too; "
                     "it is gathered after each update"});
  v.optional("hook", unit.hook,
             {.doc = "fp16 or bf16: gradients are cast to it for their "
                     "all-reduce over the replicas; default: they are not"});
  v("states", unit.states);
  v("numel", unit.numel,
    {.doc = "Elements of its parameters", .high = maxSize});
  v("padded", unit.padded,
    {.doc = "Size of the flat buffer; rank i of n keeps [i * padded / n, "
            "(i + 1) * padded / n)",
     .high = maxSize});
  v.optional("groups", unit.groupRanges,
             {.doc = "[optimizer group, begin, end] in the flat buffer"});
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_FIELDS_UNITS_H
