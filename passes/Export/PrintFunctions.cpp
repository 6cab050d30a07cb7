//===- PrintFunctions.cpp - Exported functions as JSON ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Export/PrintFunctions.h"

#include "passes/Export/ExportFunction.h"
#include "runtime/plan/PlanJson.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

struct PrintFunctionsPass
    : PassWrapper<PrintFunctionsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintFunctionsPass)
  PrintFunctionsPass() = default;
  PrintFunctionsPass(const PrintFunctionsPass &other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "print-functions"; }
  StringRef getDescription() const final {
    return "print the functions as a plan holds them";
  }
  Option<std::string> device{*this, "device", llvm::cl::desc("cpu or cuda"),
                             llvm::cl::init("cpu")};
  Option<bool> accumulate{*this, "accumulate",
                          llvm::cl::desc("add to gradients"),
                          llvm::cl::init(false)};
  Option<std::string> gradients{*this, "gradients",
                                llvm::cl::desc("dtype of gradients"),
                                llvm::cl::init("f32")};

  void runOnOperation() override {
    auto dtype = plan::parseDType(gradients);
    if (!dtype || (device != "cpu" && device != "cuda")) {
      getOperation().emitError("print-functions: unknown ")
          << (dtype ? "device '" + device + "'" : "dtype '" + gradients + "'");
      return signalPassFailure();
    }
    plan::Plan plan;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<GradientMode> modes;
      for (unsigned i = 0; i < function.getNumResults(); ++i) {
        auto binding = function.getResultAttrOfType<aten::BindingAttr>(
            i, aten::bindingAttr);
        if (binding && binding.getKind() == aten::BindingKind::ParamGrad)
          modes.push_back({accumulate, *dtype});
      }
      auto exported = exportFunction(function, modes,
                                     device == "cpu" ? aten::Device::Cpu
                                                     : aten::Device::Cuda);
      if (failed(exported))
        return signalPassFailure();
      plan.functions.push_back(std::move(*exported));
    }
    llvm::outs() << plan::toJson(plan);
    markAllAnalysesPreserved();
  }
};

} // namespace

std::unique_ptr<Pass> accel::createPrintFunctionsPass() {
  return std::make_unique<PrintFunctionsPass>();
}
void accel::registerPrintFunctionsPass() {
  PassRegistration<PrintFunctionsPass>();
}
