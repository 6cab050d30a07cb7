//===- DecideSaved.cpp - Which forward values are kept ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/DecideSaved.h"

#include "frontends/Diagnostics/Diagnostics.h"
#include "passes/Recompute/ExtractJoint.h"
#include "passes/Recompute/SolveExact.h"

#include "llvm/Support/FormatVariadic.h"

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

FailureOr<CheckpointSetting> accel::checkpointSetting(mlir::ModuleOp module) {
  CheckpointSetting setting;
  auto job = sharding::findOnly<sharding::JobOp>(module);
  bool cuda = job && job.getDevice() == "cuda";
  setting.device = cuda ? aten::Device::Cuda : aten::Device::Cpu;
  auto request = sharding::findRequest(module, "checkpoint");
  auto name =
      request ? request.getValue().getAs<StringAttr>("target") : nullptr;
  if (!name)
    return setting;
  DiagnosticEngine engine;
  setting.named = loadTarget(name.str(), engine);
  if (!setting.named)
    return request.emitOpError("names the target '")
           << name.getValue() << "', which cannot be read";
  return setting;
}

Target CheckpointSetting::target() const {
  if (named)
    return *named;
  DiagnosticEngine ignored;
  return loadTarget(device == aten::Device::Cuda ? "h100-sxm-80gb" : "cpu",
                    ignored)
      .value_or(Target());
}

namespace {

/// The name of the rule that a mode follows for an operation.
StringRef ruleOf(const JointMark &mark, bool keep) {
  switch (mark.category) {
  case JointCategory::Memory:
    return "data movement";
  case JointCategory::Reduction:
    return mark.isNorm ? "norm" : "reduction";
  case JointCategory::Pointwise:
    return keep ? "statistic" : "pointwise";
  default:
    return toString(mark.category);
  }
}

std::string milliseconds(double seconds) {
  return llvm::formatv("{0:F3} ms", seconds * 1e3).str();
}

/// The saved set for a budget, and what is to be said of it.
FailureOr<std::pair<SavedSet, std::string>>
solveBudget(func::FuncOp joint, const JointGraph &graph,
            sharding::CheckpointAttr how, const CheckpointSetting &setting) {
  if (how.getBytes() < 0)
    return joint.emitOpError("has a checkpoint budget without bytes; "
                             "activation-budget decides them");
  SavedSetProblem problem(graph, instructionTimes(graph, setting.target()));
  problem.capBytes = how.getBytes();
  const SavedSetSolution &solution = solveCached(problem);
  if (!solution.feasible)
    return joint.emitOpError("cannot keep as little as ")
           << how.getBytes()
           << " bytes: it has operations that must not be computed twice";
  std::string text =
      llvm::formatv("{0} of {1} bytes, {2} recomputed", solution.bytes.saved,
                    how.getBytes(), milliseconds(solution.recomputeSeconds));
  text += solution.gap() <= 1e-9
              ? ", proven the least"
              : ", at least " + milliseconds(solution.boundSeconds);
  return std::make_pair(solution.saved, text);
}

FailureOr<SavedSet> listedSet(func::FuncOp joint, const JointGraph &graph,
                              ArrayRef<int64_t> keep) {
  SavedSet saved(graph.marks.size());
  for (int64_t op : keep) {
    if (op < 0 || op >= static_cast<int64_t>(saved.size()) ||
        !graph.marks[op].forward || graph.marks[op].isView())
      return joint.emitOpError("has no forward operation ")
             << op << " that could be kept";
    saved[op] = true;
  }
  return saved;
}

} // namespace

LogicalResult accel::decideSaved(func::FuncOp joint,
                                 sharding::CheckpointAttr how,
                                 const CheckpointSetting &setting) {
  auto extracted = extractJoint(joint, setting.device);
  if (failed(extracted))
    return failure();
  const JointGraph &graph = extracted->graph;
  SavedSet saved;
  std::string solved;
  if (how.getMode() == CheckpointMode::Budget) {
    auto found = solveBudget(joint, graph, how, setting);
    if (failed(found))
      return failure();
    std::tie(saved, solved) = std::move(*found);
  } else if (how.getMode() == CheckpointMode::Set) {
    auto listed = listedSet(joint, graph, how.getKeep());
    if (failed(listed))
      return failure();
    saved = std::move(*listed);
    solved = "as listed";
  } else {
    saved = savedByMode(graph, stringifyCheckpointMode(how.getMode()).str());
  }
  // A statistic is one whatever the mode says.
  SavedSet usual = savedByMode(graph, "pointwise");
  StringRef why = how.getBecause().getWhy();
  for (size_t i = 0; i < saved.size(); ++i) {
    if (!graph.marks[i].forward)
      continue;
    StringRef rule =
        solved.empty() ? ruleOf(graph.marks[i], usual[i]) : StringRef(solved);
    extracted->ops[i]->setAttr(
        aten::saveAttr,
        aten::SaveAttr::get(joint.getContext(),
                            saved[i] ? aten::SaveKind::Keep
                                     : aten::SaveKind::Recompute,
                            (rule + "; " + why).str()));
  }
  return success();
}

LogicalResult accel::decideSaved(func::FuncOp joint, CheckpointMode mode,
                                 StringRef reason) {
  MLIRContext *context = joint.getContext();
  return decideSaved(
      joint,
      sharding::CheckpointAttr::get(
          context, mode, sharding::BecauseAttr::get(context, reason)),
      {});
}
