//===- ActivationCheckpointing.cpp - Which segments are recomputed --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Checkpoint/ActivationCheckpointing.h"

#include "dialects/Sharding/Sharding.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace accel;

namespace {

struct ActivationCheckpointingPass
    : PassWrapper<ActivationCheckpointingPass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ActivationCheckpointingPass)
  StringRef getArgument() const final { return "activation-checkpointing"; }
  StringRef getDescription() const final {
    return "decide the checkpoint mode of each call";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<sharding::ShardingDialect>();
  }

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto job = sharding::findOnly<sharding::JobOp>(module);
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!job || !graph) {
      module.emitError("activation-checkpointing needs a sharding.job and a "
                       "sharding.graph");
      return signalPassFailure();
    }
    auto request = sharding::findRequest(module, "checkpoint");
    auto mode = sharding::CheckpointMode::Pointwise;
    auto usual = sharding::BecauseAttr::get(
        &getContext(), "default: pointwise operators, norms and views are "
                       "recomputed, which costs next to nothing");
    if (request) {
      auto name = request.getValue().getAs<StringAttr>("mode");
      auto asked = name ? sharding::symbolizeCheckpointMode(name.getValue())
                        : std::nullopt;
      if (!asked) {
        request.emitOpError("needs 'mode', none, pointwise or full");
        return signalPassFailure();
      }
      mode = *asked;
    }
    if (mode != sharding::CheckpointMode::Full) {
      job.setCheckpointAttr(sharding::CheckpointAttr::get(
          &getContext(), mode, request ? request.getBecause() : usual));
      if (request && failed(decideCalls(request, graph)))
        signalPassFailure();
      return;
    }
    job.setCheckpointAttr(sharding::CheckpointAttr::get(
        &getContext(), sharding::CheckpointMode::Pointwise, usual));
    auto full = sharding::CheckpointAttr::get(&getContext(), mode,
                                              request.getBecause());
    llvm::StringSet<> classes = layerClasses(module, job);
    llvm::StringMap<StringRef> classOf;
    for (auto op : module.getOps<sharding::ModuleOp>())
      classOf[op.getFqn()] = op.getClassName();
    bool any = false;
    for (auto call : graph.getBody().getOps<sharding::CallOp>())
      if (classes.contains(classOf.lookup(call.getPath()))) {
        call.setCheckpointAttr(full);
        any = true;
      }
    if (!any)
      emitWarning(request.getLoc(),
                  "activation checkpointing is on, but no segment of the "
                  "model is one of the layers that the wrap policy names");
  }

private:
  /// `calls` of the request: modes of single segments, by path.
  static LogicalResult decideCalls(sharding::RequestOp request,
                                   sharding::GraphOp graph) {
    auto calls = request.getValue().getAs<DictionaryAttr>("calls");
    if (!calls)
      return success();
    size_t used = 0;
    for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
      Attribute asked = calls.get(call.getPath());
      if (!asked)
        continue;
      auto name = dyn_cast<StringAttr>(asked);
      auto mode = name ? sharding::symbolizeCheckpointMode(name.getValue())
                       : std::nullopt;
      if (!mode)
        return request.emitOpError()
               << "has the mode " << asked << " for '" << call.getPath()
               << "', expected none, pointwise or full";
      call.setCheckpointAttr(sharding::CheckpointAttr::get(
          request.getContext(), *mode, request.getBecause()));
      ++used;
    }
    if (used < calls.size())
      return request.emitOpError(
          "names a segment in 'calls' that the model lacks");
    return success();
  }

  static llvm::StringSet<> layerClasses(mlir::ModuleOp module,
                                        sharding::JobOp job) {
    llvm::StringSet<> classes;
    auto wrap = sharding::findRequest(module, "wrap");
    auto list =
        wrap ? wrap.getValue().getAs<ArrayAttr>("classes") : ArrayAttr();
    if (!list && job.getAnatomyAttr())
      list = job.getAnatomyAttr().getAs<ArrayAttr>("no_split");
    if (list)
      for (auto name : list.getAsRange<StringAttr>())
        classes.insert(name.getValue());
    return classes;
  }
};

} // namespace

std::unique_ptr<Pass> accel::createActivationCheckpointingPass() {
  return std::make_unique<ActivationCheckpointingPass>();
}
