//===- LossFrames.cpp - What Python holds while a loss is made ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/LossFrames.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Fused.h"
#include "passes/Frameworks/Framework.h"

using namespace mlir;

namespace accel {
namespace {

/// A view of the logits, or they themselves, is converted to fp32.
bool isWidened(Value logits) {
  for (Operation *user : logits.getUsers()) {
    const bool wide = getElementTypeOrSelf(user->getResult(0)).isF32();
    if (isa<aten::ToCopyOp>(user) && wide)
      return true;
    if (isa<aten::ViewOp>(user) && isWidened(user->getResult(0)))
      return true;
  }
  return false;
}

} // namespace

void noteFrames(bool eager, const std::string &transformers,
                SegmentGraph &graph) {
  graph.shiftsLogits = eager && !atLeast(transformers, "4.49");
  graph.namesNarrowLogits = !eager || atLeast(transformers, "4.46");
}

Value logitsOf(func::FuncOp joint) {
  Value first;
  for (Operation &op : joint.getBody().front()) {
    if (isa<aten::MmOp>(op) && !first)
      first = op.getResult(0);
    if (!isa<aten::LogSoftmaxOp, aten::CrossEntropyOp>(op))
      continue;
    Operation *made = op.getOperand(0).getDefiningOp();
    while (made && !isa<aten::MmOp, aten::AddmmOp>(made))
      made = made->getNumOperands() ? made->getOperand(0).getDefiningOp()
                                    : nullptr;
    return made ? made->getResult(0) : first;
  }
  return first; // fused with the loss
}

bool returnsWide(Value logits, const std::string &transformers) {
  return !atLeast(transformers, "4.46") && isWidened(logits);
}

} // namespace accel
