//===- FunctionVariants.cpp - Functions by where gradients go -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/FunctionVariants.h"

#include "dialects/Schedule/Convert.h"

using namespace mlir;

namespace accel::schedule {
namespace {

/// What a name adds to the symbol for these gradients.
std::string suffixOf(ArrayRef<GradientMode> gradients) {
  std::string dtypes, added;
  bool uniform = true, plain = true;
  for (auto [i, g] : llvm::enumerate(gradients)) {
    uniform &= g.dtype == gradients[0].dtype;
    plain &= g.dtype == plan::DType::F32;
    dtypes += (i ? "," : "@") + std::string(plan::toString(g.dtype));
    if (g.accumulate)
      added += (added.empty() ? "+" : ",") + std::to_string(i);
  }
  if (plain)
    dtypes.clear();
  else if (uniform)
    dtypes = "@" + std::string(plan::toString(gradients[0].dtype));
  return dtypes + added;
}

LogicalResult setDestinations(func::FuncOp function,
                              ArrayRef<GradientMode> gradients) {
  size_t next = 0;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto binding =
        function.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
    if (!binding || binding.getKind() != aten::BindingKind::ParamGrad)
      continue;
    if (next < gradients.size()) {
      Type dtype = tensorType(function.getContext(), gradients[next].dtype, {})
                       .getElementType();
      function.setResultAttr(i, destinationAttr,
                             DestinationAttr::get(function.getContext(), dtype,
                                                  gradients[next].accumulate));
    }
    ++next;
  }
  if (next == gradients.size())
    return success();
  return function.emitOpError("has ")
         << next << " gradients of parameters, its calls expect "
         << gradients.size();
}

} // namespace

FunctionVariants::FunctionVariants(mlir::ModuleOp module) : module(module) {
  for (auto function : module.getOps<func::FuncOp>())
    symbols[function.getName()] = function;
}

func::FuncOp FunctionVariants::get(StringRef symbol,
                                   ArrayRef<GradientMode> gradients) {
  func::FuncOp original = symbols.lookup(symbol);
  if (!original) {
    module.emitError() << "there is no function '" << symbol << "'";
    return {};
  }
  if (gradients.empty())
    return original;
  const std::string suffix = suffixOf(gradients);
  const std::string name = symbol.str() + suffix;
  func::FuncOp variant = symbols.lookup(name);
  const bool made = variant && (!suffix.empty() || used.lookup(original));
  if (made)
    return variant;
  if (suffix.empty()) {
    variant = original;
  } else {
    variant = original.clone();
    variant.setName(name);
    module.insert(std::next(original->getIterator()), variant);
    symbols[name] = variant;
  }
  used[original] |= suffix.empty();
  if (failed(setDestinations(variant, gradients)))
    return {};
  return variant;
}

void FunctionVariants::eraseUnused() {
  for (auto [original, itself] : used)
    if (!itself) {
      symbols.erase(original.getName());
      original.erase();
    }
  used.clear();
}

} // namespace accel::schedule
