//===- SelectSavedTensors.cpp - Activation checkpointing ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Aten.h"
#include "passes/Differentiate/Joint.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Passes.h"
#include "passes/Recompute/DecideSaved.h"

#include "mlir/Pass/Pass.h"

#include <map>

namespace accel {
#define GEN_PASS_DEF_SELECTSAVEDTENSORSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct SelectSavedTensorsPass
    : accel::impl::SelectSavedTensorsPassBase<SelectSavedTensorsPass> {
  using Base::Base;

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    if (frameworkOf(module).eager())
      return; // autograd saves what its operators save
    auto asked = sharding::symbolizeCheckpointMode(mode);
    if (!asked || *asked > CheckpointMode::Full) {
      module.emitError("unknown checkpoint mode '")
          << mode << "', expected none, pointwise or full";
      return signalPassFailure();
    }
    auto found = checkpointSetting(module);
    if (failed(found))
      return signalPassFailure();
    setting = std::move(*found);
    fallback = sharding::CheckpointAttr::get(
        &getContext(), *asked,
        sharding::BecauseAttr::get(&getContext(), "default"));
    auto job = sharding::findOnly<sharding::JobOp>(module);
    if (job && job.getCheckpointAttr())
      fallback = job.getCheckpointAttr();
    SymbolTable symbols(module);
    if (auto graph = sharding::findOnly<sharding::GraphOp>(module)) {
      for (auto call : graph.getBody().getOps<sharding::CallOp>())
        if (failed(bind(call, symbols)))
          return signalPassFailure();
      return;
    }
    for (auto function : module.getOps<func::FuncOp>())
      if (function.getName().ends_with(jointSuffix) &&
          failed(decideSaved(function, fallback, setting)))
        return signalPassFailure();
  }

private:
  /// What the calls of one function may differ in.
  static std::string keyOf(sharding::CheckpointAttr how) {
    std::string key = stringifyCheckpointMode(how.getMode()).str();
    if (how.getBytes() >= 0)
      key += std::to_string(how.getBytes());
    for (int64_t op : how.getKeep())
      key += "," + std::to_string(op);
    return key;
  }

  /// The first choice of a function keeps its name; others get a copy.
  LogicalResult bind(sharding::CallOp call, SymbolTable &symbols) {
    auto joint =
        symbols.lookup<func::FuncOp>((call.getCallee() + jointSuffix).str());
    if (!joint)
      return success(); // nothing of it is trained
    auto how = call.getCheckpointAttr() ? call.getCheckpointAttr() : fallback;
    auto &known = variants[call.getCallee()];
    auto found = known.find(keyOf(how));
    if (found == known.end()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!known.empty()) {
        std::string name =
            (callee.getName() + "." + stringifyCheckpointMode(how.getMode()))
                .str();
        if (how.getMode() == CheckpointMode::Set)
          name += std::to_string(known.size());
        else if (how.getBytes() >= 0)
          name += std::to_string(how.getBytes());
        callee = cloneAs(symbols, callee, name);
        joint = cloneAs(symbols, joint, name + jointSuffix.str());
      }
      if (failed(decideSaved(joint, how, setting)))
        return failure();
      found = known.emplace(keyOf(how), callee.getNameAttr()).first;
    }
    call.setCalleeAttr(FlatSymbolRefAttr::get(found->second));
    return success();
  }

  static func::FuncOp cloneAs(SymbolTable &symbols, func::FuncOp function,
                              const Twine &name) {
    func::FuncOp copy = function.clone();
    copy.setName(name.str());
    symbols.insert(copy, std::next(function->getIterator()));
    return copy;
  }

  CheckpointSetting setting;
  sharding::CheckpointAttr fallback;
  llvm::StringMap<std::map<std::string, StringAttr>> variants;
};

} // namespace
