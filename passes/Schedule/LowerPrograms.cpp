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

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace accel::schedule {

FunctionTable::FunctionTable(mlir::ModuleOp module, plan::Plan &plan)
    : module(module), plan(plan) {
  for (auto function : module.getOps<func::FuncOp>())
    symbols[function.getName()] = function;
}

namespace {

/// What a name adds to the symbol for these gradients.
std::string suffixOf(const std::vector<GradientSpec> &gradients) {
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

/// The gradients that a suffix stands for; false if it is malformed.
bool parseSuffix(StringRef suffix, std::vector<GradientSpec> &gradients) {
  auto [dtypes, added] = suffix.split('+');
  if (dtypes.consume_front("@")) {
    SmallVector<StringRef> names;
    dtypes.split(names, ',');
    for (size_t i = 0; i < gradients.size(); ++i) {
      auto dtype = plan::parseDType(names[names.size() == 1 ? 0 : i].str());
      if (!dtype || (names.size() != 1 && names.size() != gradients.size()))
        return false;
      gradients[i].dtype = *dtype;
    }
  } else if (!dtypes.empty()) {
    return false;
  }
  SmallVector<StringRef> indices;
  if (!added.empty())
    added.split(indices, ',');
  for (StringRef text : indices) {
    size_t index = 0;
    if (text.getAsInteger(10, index) || index >= gradients.size())
      return false;
    gradients[index].accumulate = true;
  }
  return true;
}

size_t numGradients(func::FuncOp function) {
  size_t count = 0;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto binding = function.getResultAttrOfType<aten::BindingAttr>(
            i, aten::bindingAttr))
      count += binding.getKind() == aten::BindingKind::ParamGrad;
  return count;
}

} // namespace

int FunctionTable::get(const std::string &symbol,
                       const std::vector<GradientSpec> &gradients) {
  std::string name = symbol + suffixOf(gradients);
  auto it = known.find(name);
  if (it != known.end())
    return it->second;
  func::FuncOp function = symbols.lookup(symbol);
  if (!function) {
    module.emitError() << "there is no function '" << symbol << "'";
    return -1;
  }
  SmallVector<GradientMode> modes;
  for (const GradientSpec &g : gradients)
    modes.push_back({g.accumulate, g.dtype});
  FailureOr<plan::Function> exported = exportFunction(
      function, modes,
      plan.device == "cpu" ? aten::Device::Cpu : aten::Device::Cuda);
  if (failed(exported))
    return -1;
  exported->name = name;
  int index = static_cast<int>(plan.functions.size());
  plan.functions.push_back(std::move(*exported));
  known[name] = index;
  return index;
}

int FunctionTable::getByName(const std::string &name) {
  auto it = known.find(name);
  if (it != known.end())
    return it->second;
  size_t cut = std::min(name.find('@'), name.find('+'));
  std::string symbol = name.substr(0, cut);
  func::FuncOp function = symbols.lookup(symbol);
  if (!function) {
    module.emitError() << "there is no function '" << symbol << "'";
    return -1;
  }
  std::vector<GradientSpec> gradients(numGradients(function));
  if (!parseSuffix(StringRef(name).drop_front(symbol.size()), gradients)) {
    module.emitError() << "'" << name << "' does not name a variant of '"
                       << symbol << "'";
    return -1;
  }
  return get(symbol, gradients);
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
  FunctionTable functions(module, plan);
  bool failedExport = false;
  std::string error = buildPrograms(
      plan, graph, options,
      [&](const std::string &name, const std::vector<GradientSpec> &gradients) {
        int index = functions.get(name, gradients);
        failedExport |= index < 0;
        return index;
      });
  if (!error.empty())
    return module.emitError() << error;
  return success(!failedExport);
}

} // namespace accel::schedule
