//===- Fp8Layers.cpp - Which linear layers compute in fp8 -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Fp8Layers.h"

#include "dialects/Sharding/Sharding.h"
#include "frontends/ModuleTree/LinearClasses.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace accel {
namespace {

/// A tied weight is the parameter of its first name, and the layer is at one of
/// the others.
llvm::StringMap<sharding::ParamOp> parametersByName(mlir::ModuleOp module) {
  llvm::StringMap<sharding::ParamOp> result;
  for (auto param : module.getOps<sharding::ParamOp>()) {
    result[param.getFqn()] = param;
    if (ArrayAttr aliases = param.getAliasesAttr())
      for (auto alias : aliases.getAsRange<StringAttr>())
        result[alias.getValue()] = param;
  }
  return result;
}

/// The linear layers in the order of named_modules().
SmallVector<std::pair<StringRef, sharding::ParamOp>>
linearLayers(mlir::ModuleOp module) {
  const auto parameters = parametersByName(module);
  SmallVector<std::pair<StringRef, sharding::ParamOp>> result;
  for (auto op : module.getOps<sharding::ModuleOp>())
    if (isLinearClass(op.getClassName()))
      if (auto at = parameters.find((op.getFqn() + ".weight").str());
          at != parameters.end())
        result.push_back({op.getFqn(), at->second});
  return result;
}

bool divides(sharding::ParamOp weight) {
  return llvm::all_of(weight.getTensorType().getShape(),
                      [](int64_t size) { return size % 16 == 0; });
}

} // namespace

void markFp8Layers(mlir::ModuleOp module, bool transformerEngine,
                   bool skipsFirst) {
  const auto layers = linearLayers(module);
  auto mark = [&](sharding::ParamOp weight) {
    weight->setAttr(fp8Attr, UnitAttr::get(module.getContext()));
  };
  if (!transformerEngine) {
    for (const auto &[name, weight] : ArrayRef(layers).drop_front(
             std::min<size_t>(skipsFirst ? 1 : 0, layers.size())))
      if (name != layers.back().first && divides(weight))
        mark(weight);
    return;
  }
  SmallVector<StringRef> ended; // parents
  for (const auto &[name, weight] : layers) {
    const StringRef parent = name.rsplit('.').first;
    if (!divides(weight))
      ended.push_back(name.contains('.') ? parent : StringRef());
    else if (!llvm::is_contained(ended,
                                 name.contains('.') ? parent : StringRef()))
      mark(weight);
  }
}

std::pair<int64_t, int64_t> countFp8Layers(mlir::ModuleOp module) {
  int64_t converted = 0;
  for (auto param : module.getOps<sharding::ParamOp>())
    converted += param->hasAttr(fp8Attr);
  return {converted, static_cast<int64_t>(linearLayers(module).size())};
}

} // namespace accel
