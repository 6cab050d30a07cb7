//===- Checkpoint.cpp - Activation checkpointing ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Checkpoint/Checkpoint.h"

#include "dialects/Aten/Aten.h"
#include "passes/Checkpoint/DecideSaved.h"
#include "passes/Differentiate/Joint.h"

#include "mlir/Pass/Pass.h"

#include <map>

using namespace mlir;
using namespace accel;

namespace {

struct Choice {
  CheckpointMode mode = CheckpointMode::Pointwise;
  std::string reason;
};

struct CheckpointPass
    : PassWrapper<CheckpointPass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckpointPass)
  CheckpointPass() = default;
  CheckpointPass(const CheckpointPass &other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "checkpoint"; }
  StringRef getDescription() const final {
    return "decide which forward values the backward may read";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<aten::AtenDialect>();
  }
  Option<std::string> mode{*this, "mode",
                           llvm::cl::desc("none, pointwise or full, where "
                                          "neither call nor job says"),
                           llvm::cl::init("pointwise")};

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto asked = sharding::symbolizeCheckpointMode(mode);
    if (!asked) {
      module.emitError("unknown checkpoint mode '")
          << mode << "', expected none, pointwise or full";
      return signalPassFailure();
    }
    fallback = {*asked, "default"};
    auto job = sharding::findOnly<sharding::JobOp>(module);
    if (job && job.getCheckpointAttr())
      fallback = choiceOf(job.getCheckpointAttr());
    SymbolTable symbols(module);
    if (auto graph = sharding::findOnly<sharding::GraphOp>(module)) {
      for (auto call : graph.getBody().getOps<sharding::CallOp>())
        bind(call, symbols);
      return;
    }
    for (auto function : module.getOps<func::FuncOp>())
      if (function.getName().ends_with(jointSuffix))
        decideSaved(function, fallback.mode, fallback.reason);
  }

private:
  static Choice choiceOf(sharding::CheckpointAttr attr) {
    return {attr.getMode(), attr.getBecause().getWhy().str()};
  }

  static func::FuncOp jointOf(SymbolTable &symbols, StringRef callee) {
    return symbols.lookup<func::FuncOp>((callee + jointSuffix).str());
  }

  /// The first mode of a function keeps its name; others get a copy.
  void bind(sharding::CallOp call, SymbolTable &symbols) {
    auto joint = jointOf(symbols, call.getCallee());
    if (!joint)
      return; // nothing of it is trained
    Choice choice = call.getCheckpointAttr()
                        ? choiceOf(call.getCheckpointAttr())
                        : fallback;
    auto &known = variants[call.getCallee()];
    auto found = known.find(choice.mode);
    if (found == known.end()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!known.empty()) {
        std::string name = (callee.getName() + "." +
                            sharding::stringifyCheckpointMode(choice.mode))
                               .str();
        callee = cloneAs(symbols, callee, name);
        joint = cloneAs(symbols, joint, name + jointSuffix.str());
      }
      decideSaved(joint, choice.mode, choice.reason);
      found = known.emplace(choice.mode, callee.getNameAttr()).first;
    }
    call.setCalleeAttr(FlatSymbolRefAttr::get(found->second));
  }

  static func::FuncOp cloneAs(SymbolTable &symbols, func::FuncOp function,
                              const Twine &name) {
    func::FuncOp copy = function.clone();
    copy.setName(name.str());
    symbols.insert(copy, std::next(function->getIterator()));
    return copy;
  }

  Choice fallback;
  llvm::StringMap<std::map<CheckpointMode, StringAttr>> variants;
};

} // namespace

std::unique_ptr<Pass> accel::createCheckpointPass() {
  return std::make_unique<CheckpointPass>();
}
void accel::registerCheckpointPass() { PassRegistration<CheckpointPass>(); }
