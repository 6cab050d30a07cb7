//===- LowerToSchedule.cpp - lower-to-schedule ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Random.h"
#include "dialects/Sharding/Pipeline.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Passes.h"
#include "passes/Schedule/ExtractGraph.h"
#include "passes/Schedule/FunctionVariants.h"
#include "passes/Schedule/RecordPeaks.h"
#include "passes/Schedule/WritePrograms.h"

#include "mlir/Pass/Pass.h"

#include <limits>

namespace accel {
#define GEN_PASS_DEF_LOWERTOSCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;
using namespace accel::schedule;

namespace {

/// The value whose storage `value` shares, or itself.
Value storageOf(Value value) {
  while (auto op = value.getDefiningOp<aten::AtenOpInterface>()) {
    if (op.getCategory() != aten::Category::View)
      break;
    value = op->getOperand(0);
  }
  return value;
}

Callee calleeOf(func::FuncOp function) {
  Callee callee;
  callee.name = function.getName().str();
  SmallVector<Value> storages;
  Operation *end = function.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(end->getOperands())) {
    auto binding =
        function.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
    if (binding && binding.getKind() == aten::BindingKind::ParamGrad)
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    Value storage = storageOf(value);
    Callee::Result result;
    result.dtype = *toDType(type.getElementType());
    result.shape = type.getShape().vec();
    result.storageBytes =
        aten::tensorBytes(cast<RankedTensorType>(storage.getType()));
    if (auto *at = llvm::find(storages, storage); at != storages.end())
      result.sharesWith = static_cast<int>(at - storages.begin());
    storages.push_back(storage);
    callee.results.push_back(std::move(result));
  }
  for (Operation &op : function.getBody().front())
    callee.draws |= aten::randomKey(&op).has_value();
  return callee;
}

struct LowerToSchedulePass
    : accel::impl::LowerToSchedulePassBase<LowerToSchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(lower(getOperation())))
      return signalPassFailure();
    auto &callees = getAnalysis<CalleeMemory>();
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(recordPeaks(program, &callees)))
        return signalPassFailure();
    markAnalysesPreserved<CalleeMemory>();
  }

private:
  WriteOptions optionsOf(mlir::ModuleOp module, const plan::Plan &layout) {
    WriteOptions options;
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    options.stages = static_cast<int>(mesh.axisSize(plan::pipelineAxis));
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    options.chunks = static_cast<int>(sharding::chunksOf(graph));
    // Other micro-batches run between a forward and its backward, and gather
    // the same units.
    const bool pauses = options.stages > 1;
    for (auto unit : module.getOps<sharding::UnitOp>())
      options.reshardAfterForward.push_back(
          pauses || unit.getReshardAttr().getAfterForward());
    auto job = sharding::findOnly<sharding::JobOp>(module);
    auto accumulation = job.getAccumulationAttr();
    options.accumulation = accumulation.getSteps();
    // Gloo's reduce_scatter clones its input and costs twice an all-to-all
    // with local adds.
    options.reduceScatter = layout.device == "cpu" ? "all_to_all" : "direct";
    IssueOptions &issue = options.issue;
    auto prefetch = job.getPrefetchAttr();
    const bool ahead = overlap && prefetch;
    issue.forwardPrefetch = ahead ? prefetch.getForward() : 0;
    issue.backwardPrefetch = ahead ? prefetch.getBackward() : 0;
    if (auto gathers = job.getGathersAttr())
      issue.holdGathers = gathers.getHeld();
    if (!overlap)
      issue.awaitReductions = std::numeric_limits<int64_t>::max();
    else if (auto reductions = job.getReductionsAttr())
      issue.awaitReductions = reductions.getAwait();
    issue.keepUnsharded =
        accumulation.getMode() == sharding::AccumulationMode::KeepUnsharded;
    issue.hostUpdates = layout.offload.states;
    issue.updateInline = !issue.hostUpdates && job.getUpdateAttr().getMode() ==
                                                   sharding::UpdateMode::Inline;
    issue.clip = layout.job.needsGradNorm();
    issue.pauses = pauses;
    issue.splitBackward = plan::splitsBackward(sharding::scheduleOf(graph));
    return options;
  }

  LogicalResult lower(mlir::ModuleOp module) {
    // What each rank holds; functions and programs are the module's.
    plan::Plan layout;
    Graph graph;
    if (failed(buildSkeleton(module, layout)) ||
        failed(extractGraph(module, layout, graph)))
      return failure();
    FunctionVariants variants(module);
    llvm::StringMap<Callee> known;
    auto callee =
        [&](const std::string &name,
            const std::vector<GradientMode> &gradients) -> FailureOr<Callee> {
      func::FuncOp function = variants.get(name, gradients);
      if (!function)
        return failure();
      auto [entry, added] = known.try_emplace(function.getName());
      if (added)
        entry->second = calleeOf(function);
      return entry->second;
    };
    if (failed(writePrograms(module, layout, graph, optionsOf(module, layout),
                             callee)))
      return failure();
    variants.eraseUnused();
    return success();
  }
};

} // namespace
