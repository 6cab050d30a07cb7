//===- ApplyAutocast.cpp - Compute under torch.autocast -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Precision/ApplyPrecision.h"
#include "passes/Precision/Autocast.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace accel {
#define GEN_PASS_DEF_APPLYAUTOCASTPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct ApplyAutocastPass
    : accel::impl::ApplyAutocastPassBase<ApplyAutocastPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    Type low = autocastType(module);
    if (low && failed(applyInOrder(module, low)))
      signalPassFailure();
  }

private:
  /// Null where nothing is cast.
  static Type autocastType(mlir::ModuleOp module) {
    if (!frameworkOf(module).castsByAutocast())
      return {};
    for (auto unit : module.getOps<sharding::UnitOp>())
      if (auto precision = unit.getPrecisionAttr();
          precision && precision.getAutocast() &&
          !precision.getCompute().isF32())
        return precision.getCompute();
    return {};
  }

  /// Each function takes the inputs that its first call hands it, which the
  /// functions before may have made wider.
  LogicalResult applyInOrder(mlir::ModuleOp module, Type low) {
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    auto job = sharding::findOnly<sharding::JobOp>(module);
    if (!graph || !job)
      return module.emitError("apply-autocast needs a sharding.job and a "
                              "sharding.graph");
    const aten::Device device =
        job.getDevice() == "cpu" ? aten::Device::Cpu : aten::Device::Cuda;
    SymbolTable symbols(module);
    llvm::SmallPtrSet<Operation *, 16> done;
    for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal())
        continue;
      if (done.insert(callee).second) {
        size_t operand = 0;
        for (BlockArgument arg : callee.getArguments())
          if (!callee.getArgAttr(arg.getArgNumber(), sharding::paramArgAttr) &&
              operand < call.getOperands().size())
            arg.setType(call.getOperands()[operand++].getType());
        if (failed(applyAutocast(callee, low, device)))
          return failure();
      }
      for (auto [result, type] :
           llvm::zip(call.getResults(), callee.getResultTypes()))
        result.setType(type);
    }
    return retypeCalls(graph);
  }
};

} // namespace
