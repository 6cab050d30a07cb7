//===- PrintShardingRules.cpp - Rules for the oracle ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/ShardingRule.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace accel {
#define GEN_PASS_DEF_PRINTSHARDINGRULESPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

static llvm::json::Array numbers(ArrayRef<int> of) {
  llvm::json::Array out;
  for (int number : of)
    out.push_back(number);
  return out;
}

static llvm::json::Array tensors(ArrayRef<aten::TensorFactors> of) {
  llvm::json::Array out;
  for (const aten::TensorFactors &tensor : of) {
    llvm::json::Array dims;
    for (ArrayRef<int> factors : tensor.dims)
      dims.push_back(numbers(factors));
    out.push_back(llvm::json::Object{{"dims", std::move(dims)},
                                     {"partial", numbers(tensor.partial)}});
  }
  return out;
}

static llvm::json::Object describe(const aten::ShardingRule &rule) {
  llvm::json::Array factors, once, sizes;
  for (const aten::Factor &factor : rule.factors)
    factors.push_back(
        llvm::json::Object{{"size", factor.size},
                           {"kind", aten::stringifyFactorKind(factor.kind)},
                           {"combine", aten::stringifyCombine(factor.combine)},
                           {"form", aten::stringifyForm(factor.form)}});
  for (unsigned operand : rule.once)
    once.push_back(operand);
  for (const aten::SizeAttribute &size : rule.sizes)
    sizes.push_back(llvm::json::Object{{"name", size.name},
                                       {"result", size.result},
                                       {"dim", size.dim},
                                       {"factor", size.factor}});
  return llvm::json::Object{{"factors", std::move(factors)},
                            {"operands", tensors(rule.operands)},
                            {"results", tensors(rule.results)},
                            {"once", std::move(once)},
                            {"sizes", std::move(sizes)}};
}

namespace {

struct PrintShardingRulesPass
    : accel::impl::PrintShardingRulesPassBase<PrintShardingRulesPass> {
  void runOnOperation() override {
    llvm::outs() << '[';
    bool first = true;
    getOperation().walk([&](aten::AtenOpInterface op) {
      llvm::json::Object entry;
      if (std::optional<aten::ShardingRule> rule = aten::shardingRule(op))
        entry = describe(*rule);
      entry["name"] = op->getName().getStringRef();
      llvm::outs() << (first ? "\n" : ",\n")
                   << llvm::json::Value(std::move(entry));
      first = false;
    });
    llvm::outs() << "\n]\n";
    markAllAnalysesPreserved();
  }
};

} // namespace
