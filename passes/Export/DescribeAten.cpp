//===- DescribeAten.cpp - What is known of operators ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Layout.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_ANNOTATELAYOUTPASS
#define GEN_PASS_DEF_PRINTOPERATORSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

/// Floating-point operations, then bytes read and written.
constexpr llvm::StringLiteral costAttr = "aten.cost";

struct AnnotateLayoutPass
    : accel::impl::AnnotateLayoutPassBase<AnnotateLayoutPass> {
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
    : accel::impl::PrintOperatorsPassBase<PrintOperatorsPass> {
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
