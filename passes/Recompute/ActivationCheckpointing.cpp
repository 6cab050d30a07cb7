//===- ActivationCheckpointing.cpp - Which segments are recomputed --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace accel {
#define GEN_PASS_DEF_ACTIVATIONCHECKPOINTINGPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;
using sharding::CheckpointMode;

namespace {

struct ActivationCheckpointingPass
    : accel::impl::ActivationCheckpointingPassBase<
          ActivationCheckpointingPass> {
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
    const frameworks::Framework &framework = frameworkOf(module);
    const auto recompute = framework.recompute();
    const bool usual = recompute.value == frameworks::Recompute::Pointwise;
    auto why = sharding::BecauseAttr::get(
        &getContext(), std::string("default: ") + recompute.why);
    // A trainer's own checkpointing is of its layers.
    const bool layersOnly = usual && framework.eager();
    job.setCheckpointAttr(sharding::CheckpointAttr::get(
        &getContext(),
        usual && !layersOnly ? CheckpointMode::Pointwise : CheckpointMode::None,
        layersOnly ? sharding::BecauseAttr::get(
                         &getContext(),
                         "default: what is outside of the layers is saved")
                   : why));
    if (!request)
      return;
    auto calls = request.getValue().getAs<DictionaryAttr>("calls");
    auto name = request.getValue().getAs<StringAttr>("mode");
    auto mode = name    ? sharding::symbolizeCheckpointMode(name.getValue())
                : calls ? std::optional(CheckpointMode::Pointwise)
                        : std::nullopt;
    if (!mode || *mode == CheckpointMode::Set) {
      request.emitOpError("needs 'mode', none, pointwise, full or budget, or "
                          "'calls'");
      return signalPassFailure();
    }
    if (auto every = request.getValue().getAs<IntegerAttr>("every");
        every && every.getInt() < 1) {
      request.emitOpError("needs 'every', 1 or more");
      return signalPassFailure();
    }
    if (*mode == CheckpointMode::Budget && !hasBytes(request)) {
      request.emitOpError("needs 'bytes', 0 or more, for the mode budget");
      return signalPassFailure();
    }
    // PyTorch's autograd has no way to recompute single operators by default; a
    // trainer may have one, for its layers.
    if (framework.eager() && !calls && *mode != CheckpointMode::Full) {
      if (*mode == CheckpointMode::Pointwise &&
          kernelsOf(module).selective != frameworks::Selective::None)
        decideLayers(
            request, job, graph,
            sharding::CheckpointAttr::get(&getContext(), *mode,
                                          usual ? why : request.getBecause()));
      return;
    }
    auto how = sharding::CheckpointAttr::get(&getContext(), *mode,
                                             request.getBecause());
    if (*mode == CheckpointMode::Full || *mode == CheckpointMode::Budget)
      decideLayers(request, job, graph, how);
    else if (name)
      job.setCheckpointAttr(how);
    if (calls)
      decideCalls(request, graph, calls);
  }

private:
  static bool hasBytes(sharding::RequestOp request) {
    auto bytes = request.getValue().getAs<IntegerAttr>("bytes");
    return bytes && bytes.getInt() >= 0;
  }

  /// The layers that the wrap policy names.
  void decideLayers(sharding::RequestOp request, sharding::JobOp job,
                    sharding::GraphOp graph, sharding::CheckpointAttr how) {
    mlir::ModuleOp module = getOperation();
    llvm::StringSet<> classes = layerClasses(module, job);
    llvm::StringMap<StringRef> classOf;
    for (auto op : module.getOps<sharding::ModuleOp>())
      classOf[op.getFqn()] = op.getClassName();
    const auto every = request.getValue().getAs<IntegerAttr>("every");
    const int64_t step = every ? every.getInt() : 1;
    int64_t layers = 0;
    auto decide = [&](sharding::CallOp call) {
      if (layers++ % step == 0)
        call.setCheckpointAttr(how);
    };
    for (auto call : graph.getBody().getOps<sharding::CallOp>())
      if (classes.contains(classOf.lookup(call.getPath())))
        decide(call);
    // Others than accel-run checkpoint what the wrap policy cuts; a policy that
    // names no layer still leaves the model's repeated ones.
    if (!layers && frameworkOf(module).eager())
      for (auto call : graph.getBody().getOps<sharding::CallOp>())
        if (isRepeated(call))
          decide(call);
    if (!layers)
      emitWarning(request.getLoc(),
                  "activation checkpointing is on, but no segment of the "
                  "model is one of the layers that the wrap policy names");
  }

  /// Each call on its own: a mode, bytes, or the operations that are kept.
  void decideCalls(sharding::RequestOp request, sharding::GraphOp graph,
                   DictionaryAttr calls) {
    size_t found = 0;
    for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
      Attribute wanted = calls.get(call.getPath());
      if (!wanted)
        continue;
      ++found;
      sharding::CheckpointAttr how = decisionFor(wanted, request.getBecause());
      if (!how) {
        request.emitOpError("has for the call at '")
            << call.getPath()
            << "' neither a mode, nor bytes, nor a list of operations";
        return signalPassFailure();
      }
      call.setCheckpointAttr(how);
    }
    if (found == calls.size())
      return;
    for (NamedAttribute entry : calls)
      if (llvm::none_of(graph.getBody().getOps<sharding::CallOp>(),
                        [&](auto call) {
                          return call.getPath() == entry.getName().getValue();
                        })) {
        request.emitOpError("names the call at '")
            << entry.getName().getValue() << "', which the graph does not have";
        return signalPassFailure();
      }
  }

  sharding::CheckpointAttr decisionFor(Attribute wanted,
                                       sharding::BecauseAttr because) {
    if (auto name = dyn_cast<StringAttr>(wanted)) {
      auto mode = sharding::symbolizeCheckpointMode(name.getValue());
      if (!mode || *mode > CheckpointMode::Full)
        return {};
      return sharding::CheckpointAttr::get(&getContext(), *mode, because);
    }
    if (auto bytes = dyn_cast<IntegerAttr>(wanted);
        bytes && bytes.getInt() >= 0)
      return sharding::CheckpointAttr::get(
          &getContext(), CheckpointMode::Budget, because, bytes.getInt(), {});
    // A list with a reason of its own.
    if (auto entry = dyn_cast<DictionaryAttr>(wanted)) {
      auto why = entry.getAs<StringAttr>("why");
      Attribute keep = entry.get("keep");
      if (!why || !keep || entry.size() != 2)
        return {};
      return decisionFor(
          keep, sharding::BecauseAttr::get(&getContext(), why.getValue()));
    }
    if (auto keep = dyn_cast<DenseI64ArrayAttr>(wanted))
      return sharding::CheckpointAttr::get(&getContext(), CheckpointMode::Set,
                                           because, -1, keep.asArrayRef());
    return {};
  }

  /// An element of a ModuleList: a path that ends in a number.
  static bool isRepeated(sharding::CallOp call) {
    StringRef last = call.getPath().rsplit('.').second;
    return !last.empty() &&
           llvm::all_of(last, [](char c) { return c >= '0' && c <= '9'; });
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
