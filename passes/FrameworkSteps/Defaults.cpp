//===- Defaults.cpp - What candidates and models share --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepEvaluator.h"
#include "runtime/plan/Optimizers.h"

#include <algorithm>

namespace accel {

StepDtypes stepDtypesOf(const frameworks::Precision &p, bool upcastFrozen) {
  StepDtypes dtypes;
  dtypes.storage = p.storage;
  dtypes.compute = p.compute;
  dtypes.reduce = p.reduce;
  dtypes.gradient = p.gradient;
  dtypes.state = p.state;
  dtypes.masterCopy = p.masterCopy;
  dtypes.upcastFrozen = upcastFrozen;
  dtypes.autocast = p.autocast;
  dtypes.outputFloat = p.autocast && p.output == plan::DType::F32;
  return dtypes;
}

UpdateRule makeUpdateRule(const plan::Optimizer &optimizer,
                          std::optional<plan::DType> stateDtype,
                          plan::UpdateHabits habits) {
  return std::make_shared<const plan::OptimizerRule>(optimizer, stateDtype,
                                                     habits);
}

const UpdateRule &adamwRule() {
  static const UpdateRule rule = makeUpdateRule(plan::Optimizer());
  return rule;
}

const char *toString(Holding holding) {
  switch (holding) {
  case Holding::Parameters:
    return "parameters";
  case Holding::Gradients:
    return "gradients";
  case Holding::Optimizer:
    return "optimizer";
  case Holding::Activations:
    return "activations";
  case Holding::Logits:
    return "logits";
  case Holding::Gathered:
    return "gathered";
  case Holding::Buffers:
    return "buffers";
  }
  return "";
}

double modelFlopsPerToken(const StepModel &model) {
  std::vector<double> multiplied(model.parameters.size());
  double attention = 0;
  for (const StepCall &call : model.calls) {
    const SegmentKind &kind = model.kinds[call.kind];
    attention += kind.attentionFlops;
    for (size_t i = 0; i < kind.multiplied.size(); ++i) {
      double &part = multiplied[call.parameters[i]];
      part = std::max(part, kind.multiplied[i]);
    }
  }
  double flops = 0;
  for (size_t p = 0; p < multiplied.size(); ++p)
    flops += multiplied[p] * (model.parameters[p].trainable ? 6.0 : 4.0) *
             static_cast<double>(model.parameters[p].numel());
  const double tokens = static_cast<double>(model.tokens());
  const auto sharing = static_cast<double>(model.ranksPerSample / model.stages);
  const double splitting =
      sharing / static_cast<double>(model.ranksPerSequence);
  return tokens > 0 ? splitting * flops + sharing * attention / tokens : 0;
}

int64_t fusedLossChunks(const StepModel &model) {
  for (const StepCall &call : model.calls) {
    const SegmentKind &kind = model.kinds[call.kind];
    const StepParameter *head = nullptr;
    for (int p : call.parameters)
      if (!head || model.parameters[p].numel() > head->numel())
        head = &model.parameters[p];
    if (!kind.loss || kind.logitsBytes <= 0 || model.sequenceLength <= 0 ||
        !head || head->shape.size() != 2)
      continue;
    return frameworks::fusedLossChunks(model.tokens(), head->shape[1],
                                       head->shape[0]);
  }
  return 1;
}

} // namespace accel
