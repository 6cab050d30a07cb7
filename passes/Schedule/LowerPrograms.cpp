//===- LowerPrograms.cpp - From decided IR to plain programs --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/LowerPrograms.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Export/ExportFunction.h"
#include "passes/Schedule/ExtractGraph.h"
#include "passes/Schedule/FunctionVariants.h"

using namespace mlir;

namespace accel::schedule {

FunctionTable::FunctionTable(mlir::ModuleOp module, plan::Plan &plan)
    : module(module), plan(plan) {
  for (auto function : module.getOps<func::FuncOp>())
    symbols[function.getName()] = function;
}

int FunctionTable::get(func::FuncOp function) {
  auto it = known.find(function.getName());
  if (it != known.end())
    return it->second;
  FailureOr<plan::Function> exported = exportFunction(
      function, plan.device == "cpu" ? aten::Device::Cpu : aten::Device::Cuda);
  if (failed(exported))
    return -1;
  int index = static_cast<int>(plan.functions.size());
  plan.functions.push_back(std::move(*exported));
  known[function.getName()] = index;
  return index;
}

int FunctionTable::getByName(StringRef name) {
  func::FuncOp function = symbols.lookup(name);
  if (function)
    return get(function);
  module.emitError() << "there is no function '" << name << "'";
  return -1;
}

LogicalResult lowerPrograms(mlir::ModuleOp module, plan::Plan &plan) {
  if (failed(buildSkeleton(module, plan)))
    return failure();
  Graph graph;
  if (failed(extractGraph(module, plan, graph)))
    return failure();
  BuildOptions options;
  for (auto unit : module.getOps<sharding::UnitOp>())
    options.units.push_back({unit.getReshardAttr().getAfterForward()});
  auto job = sharding::findOnly<sharding::JobOp>(module);
  auto accumulation = job.getAccumulationAttr();
  options.accumulation = accumulation.getSteps();
  options.keepUnsharded =
      accumulation.getMode() == sharding::AccumulationMode::KeepUnsharded;
  options.updateInline =
      job.getUpdateAttr().getMode() == sharding::UpdateMode::Inline;
  options.clip = plan.job.optimizer.maxGradNorm > 0 || plan.job.lossScaling;
  // Gloo's reduce_scatter clones its input and costs twice an all-to-all with
  // local adds.
  options.reduceScatter = plan.device == "cpu" ? "all_to_all" : "direct";
  FunctionVariants variants(module);
  FunctionTable functions(module, plan);
  bool failedExport = false;
  std::string error = buildPrograms(
      plan, graph, options,
      [&](const std::string &name, const std::vector<GradientSpec> &gradients) {
        SmallVector<GradientMode> modes;
        for (const GradientSpec &g : gradients)
          modes.push_back({g.accumulate, g.dtype});
        func::FuncOp function = variants.get(name, modes);
        int index = function ? functions.get(function) : -1;
        failedExport |= index < 0;
        return index;
      });
  if (!error.empty())
    return module.emitError() << error;
  variants.eraseUnused();
  return success(!failedExport);
}

} // namespace accel::schedule
