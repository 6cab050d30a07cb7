//===- LossFrames.cpp - What Python holds while a loss is made ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/LossFrames.h"

#include "dialects/Aten/Aten.h"
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
  for (Operation &op : joint.getBody().front())
    if (auto mm = dyn_cast<aten::MmOp>(op))
      return mm.getResult();
  return {};
}

bool returnsWide(Value logits, const std::string &transformers) {
  return !atLeast(transformers, "4.46") && isWidened(logits);
}

} // namespace accel
