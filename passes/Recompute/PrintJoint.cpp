//===- PrintJoint.cpp - Joint graphs as text ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/Differentiate/Joint.h"
#include "passes/Passes.h"
#include "passes/Recompute/ExtractJoint.h"
#include "passes/Recompute/JointJson.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_PRINTJOINTPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct PrintJointPass : accel::impl::PrintJointPassBase<PrintJointPass> {
  using Base::Base;

  void runOnOperation() override {
    if (device != "cpu" && device != "cuda") {
      getOperation().emitError("print-joint: unknown device '")
          << device << "'";
      return signalPassFailure();
    }
    std::string text = "[";
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.getName().ends_with(jointSuffix))
        continue;
      auto extracted = extractJoint(
          function, device == "cpu" ? aten::Device::Cpu : aten::Device::Cuda);
      if (failed(extracted))
        return signalPassFailure();
      text += text.size() > 1 ? "," : "";
      text += toJson(extracted->graph);
    }
    llvm::outs() << text << "]\n";
    markAllAnalysesPreserved();
  }
};

} // namespace
