//===- DescribeAten.cpp - What is known of operators ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Export/DescribeAten.h"

#include "dialects/Aten/Layout.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

/// Floating-point operations, then bytes read and written.
constexpr llvm::StringLiteral costAttr = "aten.cost";

struct AnnotateLayoutPass
    : PassWrapper<AnnotateLayoutPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AnnotateLayoutPass)
  StringRef getArgument() const final { return "annotate-layout"; }
  StringRef getDescription() const final {
    return "write the strides of each aten operation's results, and its cost, "
           "on it";
  }

  void runOnOperation() override {
    aten::LayoutAnalysis layout;
    Builder b(&getContext());
    getOperation().walk([&](aten::AtenOpInterface aten) {
      SmallVector<Attribute> all;
      for (Value result : aten->getResults())
        all.push_back(b.getDenseI64ArrayAttr(layout.strides(result)));
      aten->setAttr(aten::stridesAttr, b.getArrayAttr(all));
      aten::Cost cost = aten.getCost();
      aten->setAttr(costAttr, b.getDenseF64ArrayAttr({cost.flops, cost.bytes}));
    });
  }
};

struct PrintOperatorsPass
    : PassWrapper<PrintOperatorsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintOperatorsPass)
  StringRef getArgument() const final { return "print-operators"; }
  StringRef getDescription() const final {
    return "print the operations of the aten dialect as JSON";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<aten::AtenDialect>();
  }

  void runOnOperation() override {
    llvm::outs() << '[';
    bool first = true;
    for (RegisteredOperationName name :
         getContext().getRegisteredOperations()) { // sorted by name
      if (name.getDialectNamespace() !=
          aten::AtenDialect::getDialectNamespace())
        continue;
      bool derivative = name.hasInterface<aten::DerivativeOpInterface>();
      llvm::outs() << (first ? "\n" : ",\n") << "{\"name\":\""
                   << name.getStringRef()
                   << "\",\"derivative\":" << (derivative ? "true" : "false")
                   << '}';
      first = false;
    }
    llvm::outs() << "\n]\n";
    markAllAnalysesPreserved();
  }
};

} // namespace

std::unique_ptr<Pass> accel::createAnnotateLayoutPass() {
  return std::make_unique<AnnotateLayoutPass>();
}
void accel::registerAnnotateLayoutPass() {
  PassRegistration<AnnotateLayoutPass>();
}
std::unique_ptr<Pass> accel::createPrintOperatorsPass() {
  return std::make_unique<PrintOperatorsPass>();
}
void accel::registerPrintOperatorsPass() {
  PassRegistration<PrintOperatorsPass>();
}
