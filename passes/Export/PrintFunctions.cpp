//===- PrintFunctions.cpp - Exported functions as JSON ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/Export/ExportFunction.h"
#include "passes/Passes.h"
#include "runtime/plan/PlanJson.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_PRINTFUNCTIONSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct PrintFunctionsPass
    : accel::impl::PrintFunctionsPassBase<PrintFunctionsPass> {
  using Base::Base;

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
                                                     : aten::Device::Cuda,
                                     Reuse::AnyDead);
      if (failed(exported))
        return signalPassFailure();
      plan.functions.push_back(std::move(*exported));
    }
    llvm::outs() << plan::toJson(plan);
    markAllAnalysesPreserved();
  }
};

} // namespace
