//===- ActivationBudget.cpp - What each layer may keep --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/Differentiate/Joint.h"
#include "passes/Recompute/DecideSaved.h"
#include "passes/Recompute/ExtractJoint.h"
#include "passes/Recompute/Pareto.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace accel {
#define GEN_PASS_DEF_ACTIVATIONBUDGETPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct ActivationBudgetPass
    : accel::impl::ActivationBudgetPassBase<ActivationBudgetPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!graph || !findCalls(graph))
      return;
    auto request = sharding::findRequest(module, "checkpoint");
    auto bytes =
        request ? request.getValue().getAs<IntegerAttr>("bytes") : nullptr;
    if (!bytes) {
      module.emitError("activation-budget: calls share a budget, but no "
                       "request \"checkpoint\" has 'bytes'");
      return signalPassFailure();
    }
    auto setting = checkpointSetting(module);
    if (failed(setting) || failed(share(request, bytes.getInt(), *setting)))
      signalPassFailure();
  }

private:
  /// Calls whose budget is a share, by callee; whether there is any.
  bool findCalls(sharding::GraphOp graph) {
    SymbolTable symbols(getOperation());
    calls.clear();
    for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
      auto how = call.getCheckpointAttr();
      if (!how || how.getMode() != CheckpointMode::Budget ||
          how.getBytes() >= 0)
        continue;
      if (auto joint = symbols.lookup<func::FuncOp>(
              (call.getCallee() + jointSuffix).str()))
        calls[joint].push_back(call);
      else
        call.removeCheckpointAttr(); // nothing of it is trained
    }
    return !calls.empty();
  }

  LogicalResult share(sharding::RequestOp request, int64_t budget,
                      const CheckpointSetting &setting) {
    const Target target = setting.target();
    std::vector<BudgetKind> kinds;
    std::vector<const std::vector<ParetoPoint> *> fronts;
    for (auto &[joint, list] : calls) {
      auto extracted = extractJoint(joint, setting.device);
      if (failed(extracted))
        return failure();
      fronts.push_back(&paretoFront(extracted->graph, target));
      BudgetKind &kind = kinds.emplace_back();
      kind.calls = static_cast<int>(list.size());
      for (const ParetoPoint &point : *fronts.back()) {
        kind.bytes.push_back(point.solution.bytes.saved);
        kind.seconds.push_back(point.solution.recomputeSeconds);
      }
    }
    const BudgetShare found = shareBudget(kinds, budget);
    if (!found.feasible)
      return request.emitOpError("allows ")
             << budget << " bytes of activations, but the layers need at least "
             << found.leastBytes;
    size_t k = 0;
    for (auto &[joint, list] : calls) {
      for (auto [call, way] : llvm::zip_equal(list, found.ways[k]))
        decide(call, (*fronts[k])[way], budget);
      ++k;
    }
    return success();
  }

  /// The cap is what the way keeps, so that the same set is found again.
  void decide(sharding::CallOp call, const ParetoPoint &point, int64_t budget) {
    auto because = call.getCheckpointAttr().getBecause();
    std::string why =
        llvm::formatv("{0}: of {1} bytes for all layers this one keeps {2} "
                      "and recomputes {3:F3} ms",
                      because.getWhy(), budget, point.solution.bytes.saved,
                      point.solution.recomputeSeconds * 1e3);
    call.setCheckpointAttr(sharding::CheckpointAttr::get(
        &getContext(), CheckpointMode::Budget,
        sharding::BecauseAttr::get(&getContext(), why, because.getFile(),
                                   because.getLine(), because.getColumn()),
        point.solution.bytes.saved, {}));
  }

  llvm::MapVector<func::FuncOp, SmallVector<sharding::CallOp>> calls;
};

} // namespace
