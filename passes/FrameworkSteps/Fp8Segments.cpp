//===- Fp8Segments.cpp - The segments of a job in fp8 ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Fp8Segments.h"

#include "passes/Cost/OpCost.h"
#include "passes/Frameworks/Fp8Layers.h"

namespace accel {

void Fp8Segments::read(sharding::Fp8Attr attr, FrameworkKind framework,
                       int64_t rounding, bool splitsByDtensor) {
  if (!attr)
    return;
  const sharding::Fp8Recipe recipe = attr.getRecipe();
  form.transformerEngine = recipe == sharding::Fp8Recipe::Delayed;
  form.wideGradWeight = recipe == sharding::Fp8Recipe::RowwiseGradWeight;
  form.rowwise = recipe == sharding::Fp8Recipe::Rowwise || form.wideGradWeight;
  form.gathered = attr.getGathers();
  form.gathersInputs =
      splitsByDtensor && recipe == sharding::Fp8Recipe::Tensorwise;
  form.dropsWeights = framework == FrameworkKind::Fsdp2;
  if (!form.transformerEngine)
    return;
  // DelayedScalingRecipeState: a scale and a history for each of three tensors
  // of the forward and two of the backward, in fp32.
  for (int64_t tensors : {3, 2})
    for (int64_t each : {int64_t(1), attr.getAmaxHistory()})
      buffers += (4 * tensors * each + rounding - 1) / rounding * rounding;
}

void Fp8Segments::addParameter(sharding::ParamOp op, int index,
                               StepParameter &parameter) {
  if (!op->hasAttr(fp8Attr))
    return;
  converted.insert(index);
  parameter.gathersFp8 = form.gathered;
  parameter.replicatedBytes += buffers;
}

std::string Fp8Segments::key(llvm::ArrayRef<int> indices) const {
  std::string text;
  if (!converted.empty())
    for (int index : indices)
      text += converted.count(index) ? '8' : '-';
  return text;
}

void Fp8Segments::convert(const std::vector<int> &indices, SegmentGraph &graph,
                          bool compiled, const Target *target,
                          StepModel &model) {
  std::vector<int> slots;
  for (size_t i = 0; i < graph.function.params.size(); ++i)
    if (converted.count(indices[i]))
      slots.push_back(graph.function.params[i]);
  if (slots.empty())
    return;
  Float8Form own = form;
  own.compiled = compiled;
  const plan::Function wide = graph.function;
  for (const Float8Layer &layer : useFloat8(graph, slots, own))
    if (target && !layer.before.empty())
      note(wide, graph.function, layer, compiled, *target, model);
}

void Fp8Segments::note(const plan::Function &wide, const plan::Function &narrow,
                       const Float8Layer &layer, bool compiled,
                       const Target &target, StepModel &model) {
  Fp8Seconds seconds;
  for (size_t i = 0; i < narrow.params.size(); ++i)
    if (narrow.params[i] == layer.parameter)
      seconds.name = narrow.paramNames[i];
  seconds.rows = layer.rows;
  seconds.in = layer.in;
  seconds.out = layer.out;
  for (int i : layer.before)
    seconds.wide += opSeconds(wide, wide.instructions[i], target);
  plan::Function part = narrow;
  part.instructions.clear();
  for (int i : layer.after)
    part.instructions.push_back(narrow.instructions[i]);
  seconds.narrow = compiled ? fusedCost(part, target).seconds
                            : eagerCost(part, target).seconds;
  // A compiled function is measured after the same one that is not.
  auto [known, first] =
      noted.try_emplace(narrow.name + "." + seconds.name, model.fp8.size());
  if (first)
    model.fp8.emplace_back();
  model.fp8[known->second] = std::move(seconds);
}

} // namespace accel
