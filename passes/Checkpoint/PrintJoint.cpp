//===- PrintJoint.cpp - Joint graphs as text ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Checkpoint/PrintJoint.h"

#include "passes/Checkpoint/ExtractJoint.h"
#include "passes/Checkpoint/JointJson.h"
#include "passes/Differentiate/Joint.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

struct PrintJointPass
    : PassWrapper<PrintJointPass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintJointPass)
  PrintJointPass() = default;
  PrintJointPass(const PrintJointPass &other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "print-joint"; }
  StringRef getDescription() const final {
    return "print the joint functions as graphs";
  }
  Option<std::string> device{*this, "device", llvm::cl::desc("cpu or cuda"),
                             llvm::cl::init("cpu")};

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

void accel::registerPrintJointPass() { PassRegistration<PrintJointPass>(); }
