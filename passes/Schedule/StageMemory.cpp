//===- StageMemory.cpp - What calls take of their stage's memory ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/StageMemory.h"

#include "dialects/Aten/Aten.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Export/ExportFunction.h"
#include "passes/PipelineSchedules/Schedule.h"
#include "runtime/plan/Timeline.h"
#include "runtime/plan/UpdateLayout.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>

using namespace mlir;

namespace accel::schedule {
namespace {

int64_t bytesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return 0;
  return tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
}

/// What calls of one function take, whatever their parameters.
struct FunctionMemory {
  int64_t frame = 0;   // from a forward to its backward
  int64_t largest = 0; // while its backward runs
};

class StageMemory {
public:
  StageMemory(mlir::ModuleOp module, ArrayRef<sharding::CallOp> calls)
      : symbols(module), calls(calls) {
    auto job = sharding::findOnly<sharding::JobOp>(module);
    device = job.getDevice() == "cpu" ? aten::Device::Cpu : aten::Device::Cuda;
  }

  LogicalResult fill(mlir::ModuleOp module, pipeline::StageProblem &problem) {
    if (failed(buildSkeleton(module, layout)))
      return failure();
    for (auto [index, parameter] : llvm::enumerate(layout.parameters)) {
      parameterOf[parameter.fqn] = static_cast<int>(index);
      for (const std::string &alias : parameter.aliases)
        parameterOf[alias] = static_cast<int>(index);
    }
    std::vector<int64_t> working(calls.size());
    for (size_t c = 0; c < calls.size(); ++c) {
      sharding::CallOp call = calls[c];
      FailureOr<FunctionMemory> own = memoryOf(call.getCallee());
      if (failed(own))
        return failure();
      // Where the model returns to its first rank, that has a tied embedding
      // once.
      const bool returns = c + 1 == calls.size() && !problem.ranks.empty() &&
                           problem.ranks.front() == problem.ranks.back();
      const auto [held, gathered] =
          parametersOf(call, returns ? calls.front() : sharding::CallOp());
      problem.calls[c].heldBytes = held;
      problem.calls[c].perFrameBytes = own->frame;
      // The next call's parameters come while this one's are there.
      working[c] = own->largest + gathered;
    }
    // Of what most calls need while they compute each stage has room for one;
    // what others need beyond it is theirs.
    std::vector<int64_t> sorted = working;
    const auto middle = sorted.begin() + sorted.size() / 2;
    std::nth_element(sorted.begin(), middle, sorted.end());
    for (size_t c = 0; c < calls.size(); ++c)
      problem.calls[c].heldBytes += std::max<int64_t>(0, working[c] - *middle);
    room = *middle;
    return success();
  }

  int64_t room = 0; // of the call that computes

private:
  FailureOr<FunctionMemory> memoryOf(StringRef callee) {
    auto [entry, isNew] = known.try_emplace(callee);
    if (!isNew)
      return entry->second;
    FunctionMemory memory;
    if (auto forward =
            symbols.lookup<func::FuncOp>((callee + ".forward").str()))
      for (unsigned i = 0; i < forward.getNumResults(); ++i)
        if (isSaved(forward, i))
          memory.frame += bytesOf(forward.getResultTypes()[i]);
    auto backward = symbols.lookup<func::FuncOp>((callee + ".backward").str());
    if (!backward)
      backward = symbols.lookup<func::FuncOp>(callee);
    size_t gradients = 0;
    for (unsigned i = 0; i < backward.getNumResults(); ++i) {
      auto binding =
          backward.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
      gradients += binding && binding.getKind() == aten::BindingKind::ParamGrad;
    }
    FailureOr<plan::Function> exported = exportFunction(
        backward, std::vector<GradientMode>(gradients), device, Reuse::AnyDead);
    if (failed(exported))
      return failure();
    memory.largest =
        plan::profileFunction(*exported,
                              std::vector<int64_t>(exported->inputs.size(), 0))
            .peakTotalBytes;
    return known[callee] = memory;
  }

  static bool isSaved(func::FuncOp function, unsigned result) {
    auto binding = function.getResultAttrOfType<aten::BindingAttr>(
        result, aten::bindingAttr);
    return binding && (binding.getKind() == aten::BindingKind::Saved ||
                       binding.getKind() == aten::BindingKind::Output);
  }

  /// The parameters that the call reads, by index.
  SmallVector<int> readsOf(sharding::CallOp call) {
    SmallVector<int> result;
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    for (unsigned i = 0; i < callee.getNumArguments(); ++i) {
      auto name =
          callee.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr);
      if (!name)
        continue;
      auto at = parameterOf.find(call.bindParam(name.getValue()));
      if (at != parameterOf.end())
        result.push_back(at->second);
    }
    return result;
  }

  /// What a rank holds of the call's parameters all the time, but for those
  /// that it has for `other` (null: none) already, and while it computes.
  std::pair<int64_t, int64_t> parametersOf(sharding::CallOp call,
                                           sharding::CallOp other) {
    SmallVector<int> known;
    if (other)
      known = readsOf(other);
    double held = 0, gathered = 0;
    for (int index : readsOf(call)) {
      const plan::Parameter &parameter = layout.parameters[index];
      const bool isNew = !llvm::is_contained(known, index);
      if (parameter.unit < 0)
        continue;
      const plan::Unit &unit = layout.units[parameter.unit];
      const double share =
          static_cast<double>(plan::ownNumel(layout, parameter)) /
          static_cast<double>(std::max<int64_t>(1, unit.numel));
      auto role = [&](plan::Role role) {
        return static_cast<double>(plan::roleBytes(layout, unit, role));
      };
      const double whole = role(plan::Role::Gathered);
      const double shard = static_cast<double>(plan::shardNumel(layout, unit) *
                                               plan::itemSize(unit.storage));
      if (isNew)
        held += share * (shard + (unit.whole ? whole : 0));
      gathered += share * (unit.whole ? 0 : 2 * whole);
      if (!unit.trainable)
        continue;
      if (isNew)
        held += share * (static_cast<double>(plan::stateBytes(layout, unit)) +
                         role(plan::Role::ShardGradient));
      gathered += share * role(plan::Role::Gradient);
    }
    return {static_cast<int64_t>(held), static_cast<int64_t>(gathered)};
  }

  SymbolTable symbols;
  ArrayRef<sharding::CallOp> calls;
  aten::Device device = aten::Device::Cpu;
  plan::Plan layout;
  llvm::StringMap<int> parameterOf;
  llvm::StringMap<FunctionMemory> known;
};

} // namespace

LogicalResult limitStages(mlir::ModuleOp module,
                          ArrayRef<sharding::CallOp> calls,
                          const Target &target, int64_t budget, StringRef kind,
                          pipeline::StageProblem &problem) {
  auto accumulation =
      sharding::findOnly<sharding::JobOp>(module).getAccumulationAttr();
  StageMemory memory(module, calls);
  if (failed(memory.fill(module, problem)))
    return failure();
  pipeline::Problem schedule;
  schedule.kind = pipeline::findKind(kind.str())->kind;
  schedule.stages = static_cast<int>(problem.stages.size());
  schedule.microBatches =
      accumulation ? static_cast<int>(accumulation.getSteps()) : 1;
  const auto ranks =
      llvm::SmallSet<int, 8>(problem.ranks.begin(), problem.ranks.end());
  if (!ranks.empty())
    schedule.chunks = schedule.stages / static_cast<int>(ranks.size());
  if (std::string why = pipeline::check(schedule); !why.empty())
    return module.emitError("no order of the stages: ") << why;
  const pipeline::Schedule order = pipeline::makeSchedule(schedule);
  const std::vector<int> frames = pipeline::countFrames(schedule, order);
  if (!ranks.empty())
    problem.moments = pipeline::momentsOf(schedule, order);
  // Tensors of which the allocator's segments fill the device.
  const int64_t device = budget - target.contextBytes;
  if (device <= 0)
    return success();
  const double segments =
      static_cast<double>(target.reservedBytes(device)) / device;
  const auto tensors =
      static_cast<int64_t>(static_cast<double>(device) / segments);
  for (size_t s = 0; s < problem.stages.size(); ++s)
    problem.stages[s] = {frames[s],
                         std::max<int64_t>(0, tensors - memory.room)};
  return success();
}

} // namespace accel::schedule
