//===- DecideSaved.cpp - Which forward values are kept ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Checkpoint/DecideSaved.h"

#include "dialects/Aten/Aten.h"

using namespace mlir;
using namespace accel;

DenseSet<Operation *> accel::forwardOps(func::FuncOp joint) {
  Block &body = joint.getBody().front();
  SmallVector<Operation *> worklist;
  auto visit = [&](Value value) {
    if (Operation *op = value.getDefiningOp())
      worklist.push_back(op);
  };
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    auto binding =
        joint.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
    if (binding && binding.getKind() == aten::BindingKind::Output)
      visit(value);
  }
  DenseSet<Operation *> forward;
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!forward.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      visit(operand);
  }
  return forward;
}

namespace {

/// The default policy, operation by operation in order.
class PointwisePolicy {
public:
  /// Whether the results are kept, and the name of the rule that says so.
  std::pair<bool, StringRef> decide(aten::AtenOpInterface op) {
    switch (op.getCategory()) {
    case aten::Category::View:
      return {false, "view"};
    case aten::Category::Matmul:
      return {true, "matmul"};
    case aten::Category::Attention:
      return {true, "attention"};
    case aten::Category::Opaque:
      return {true, "opaque"};
    case aten::Category::Memory:
      return {false, "data movement"};
    case aten::Category::Reduction:
      if (isa<aten::FusedRmsNormOp, aten::NativeLayerNormOp>(op))
        return {false, "norm"};
      statistics.insert_range(op->getResults());
      return {true, "reduction"};
    case aten::Category::Pointwise:
      break;
    }
    // What is computed from a statistic alone is as small and as welcome.
    bool small = llvm::all_of(op->getOperands(),
                              [&](Value v) { return statistics.contains(v); });
    if (!small || op->getNumOperands() == 0)
      return {false, "pointwise"};
    statistics.insert_range(op->getResults());
    return {true, "statistic"};
  }

private:
  DenseSet<Value> statistics;
};

} // namespace

void accel::decideSaved(func::FuncOp joint, CheckpointMode mode,
                        StringRef reason) {
  DenseSet<Operation *> forward = forwardOps(joint);
  PointwisePolicy policy;
  MLIRContext *context = joint.getContext();
  for (Operation &op : joint.getBody().front()) {
    auto aten = dyn_cast<aten::AtenOpInterface>(op);
    if (!aten || !forward.contains(&op))
      continue;
    auto [keep, rule] = policy.decide(aten);
    if (mode == CheckpointMode::Full)
      keep = false;
    else if (mode == CheckpointMode::None)
      keep = aten.getCategory() != aten::Category::View;
    op.setAttr(aten::saveAttr,
               aten::SaveAttr::get(context,
                                   keep ? aten::SaveKind::Keep
                                        : aten::SaveKind::Recompute,
                                   (rule + "; " + reason).str()));
  }
}
