//===- ApplyAutocast.cpp - Compute under torch.autocast -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Sharding.h"
#include "passes/Precision/ApplyPrecision.h"
#include "passes/Precision/Autocast.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

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
  /// What became of a function, by the types of its calls' operands.
  struct Versions {
    OwningOpRef<func::FuncOp> original;
    SmallVector<std::pair<SmallVector<Type>, func::FuncOp>, 1> made;
  };

  /// Each function takes the inputs that its calls hand it, which the functions
  /// before may have made wider; calls that hand it others get a copy of it. (A
  /// quantised layer returns what its norm gave it, so that the first layer
  /// takes 16 bits and the later ones fp32.)
  LogicalResult applyInOrder(mlir::ModuleOp module, Type low) {
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    auto job = sharding::findOnly<sharding::JobOp>(module);
    if (!graph || !job)
      return module.emitError("apply-autocast needs a sharding.job and a "
                              "sharding.graph");
    const aten::Device device =
        job.getDevice() == "cpu" ? aten::Device::Cpu : aten::Device::Cuda;
    SymbolTable symbols(module);
    llvm::StringMap<Versions> versions;
    findFrozen(module);
    for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal())
        continue;
      Versions &known = versions[callee.getSymName()];
      if (!known.original)
        known.original = callee.clone();
      const SmallVector<Type> types(call.getOperandTypes());
      auto version = llvm::find_if(
          known.made, [&](auto &made) { return made.first == types; });
      if (version != known.made.end()) {
        callee = version->second;
      } else {
        if (!known.made.empty()) {
          auto copy = cast<func::FuncOp>(known.original->clone());
          symbols.insert(copy, ++Block::iterator(callee));
          callee = copy;
        }
        known.made.push_back({types, callee});
        size_t operand = 0;
        for (BlockArgument arg : callee.getArguments())
          if (!callee.getArgAttr(arg.getArgNumber(), sharding::paramArgAttr) &&
              operand < types.size())
            arg.setType(types[operand++]);
        if (failed(applyAutocast(callee, low, device, frozenOf(call, callee))))
          return failure();
      }
      call.setCallee(callee.getSymName());
      for (auto [result, type] :
           llvm::zip(call.getResults(), callee.getResultTypes()))
        result.setType(type);
    }
    return retypeCalls(graph);
  }

  void findFrozen(mlir::ModuleOp module) {
    frozen.clear();
    for (auto param : module.getOps<sharding::ParamOp>()) {
      if (!param.getFrozen())
        continue;
      frozen.insert(param.getFqn());
      if (ArrayAttr aliases = param.getAliasesAttr())
        for (auto alias : aliases.getAsRange<StringAttr>())
          frozen.insert(alias.getValue());
    }
  }
  SmallVector<bool> frozenOf(sharding::CallOp call, func::FuncOp callee) {
    SmallVector<bool> result(callee.getNumArguments(), false);
    for (unsigned i = 0; i < result.size(); ++i)
      if (auto name =
              callee.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr))
        result[i] = frozen.contains(call.bindParam(name.getValue()));
    return result;
  }

  llvm::StringSet<> frozen; // names of parameters
};

} // namespace
