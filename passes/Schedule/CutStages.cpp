//===- CutStages.cpp - cut-stages -----------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Aten.h"
#include "dialects/Schedule/Schedule.h"
#include "dialects/Sharding/Pipeline.h"
#include "passes/Cost/OpCost.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Export/ExportFunction.h"
#include "passes/Passes.h"
#include "passes/PipelineSchedules/Stages.h"
#include "passes/Schedule/StageMemory.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>

namespace accel {
#define GEN_PASS_DEF_CUTSTAGESPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

class StageCutter {
public:
  StageCutter(mlir::ModuleOp module, plan::ChunkLayout layout,
              bool splitBackward, bool forwardsFirst, const Target &target)
      : module(module), symbols(module), layout(layout),
        splitBackward(splitBackward), forwardsFirst(forwardsFirst),
        target(target) {}

  LogicalResult run() {
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    auto job = sharding::findOnly<sharding::JobOp>(module);
    if (!graph || !job)
      return module.emitError(
          "cut-stages needs a sharding.graph and a sharding.job");
    device = job.getDevice() == "cpu" ? aten::Device::Cpu : aten::Device::Cuda;
    calls = llvm::to_vector(graph.getBody().getOps<sharding::CallOp>());
    pipeline::StageProblem problem;
    for (sharding::CallOp call : calls) {
      FailureOr<double> seconds = secondsOf(call);
      if (failed(seconds))
        return failure();
      problem.calls.push_back({nameOf(call), *seconds, 0, 0});
    }
    problem.stages.resize(layout.count());
    for (int i = 0; layout.chunks > 1 && i < layout.count(); ++i)
      problem.ranks.push_back(layout.stageOf(i));
    FailureOr<pipeline::StageCut> within = cutWithinMemory(problem);
    if (failed(within))
      return failure();
    const pipeline::StageCut cut = *within;
    if (!cut.problem.empty())
      return graph.emitOpError("cannot be cut into stages: ") << cut.problem;
    Builder builder(module.getContext());
    SmallVector<Attribute> reasons;
    for (auto [stage, begin] : llvm::enumerate(cut.begins)) {
      const size_t end =
          stage + 1 < cut.begins.size() ? cut.begins[stage + 1] : calls.size();
      double seconds = 0;
      for (size_t c = begin; c < end; ++c) {
        calls[c]->setAttr(sharding::stageAttr,
                          builder.getI64IntegerAttr(stage));
        seconds += problem.calls[c].seconds;
      }
      std::string why;
      llvm::raw_string_ostream(why)
          << llvm::format("%.3g", 1e3 * seconds)
          << " ms a micro-batch; the slowest "
          << (layout.chunks > 1 ? "chunk" : "stage") << " takes "
          << llvm::format("%.3g", 1e3 * cut.seconds) << " ms" << memoryWhy;
      reasons.push_back(sharding::BecauseAttr::get(module.getContext(), why));
    }
    graph->setAttr(sharding::stagesAttr, builder.getArrayAttr(reasons));
    if (layout.chunks > 1)
      graph->setAttr(sharding::chunksAttr,
                     builder.getI64IntegerAttr(layout.chunks));
    if (splitBackward)
      graph->setAttr(sharding::splitBackwardAttr, builder.getUnitAttr());
    if (forwardsFirst)
      graph->setAttr(sharding::forwardsFirstAttr, builder.getUnitAttr());
    placeUnits();
    return success();
  }

private:
  /// The fastest cut whose stages have room on their devices, with all of their
  /// chunks; the fastest of all where none has.
  FailureOr<pipeline::StageCut>
  cutWithinMemory(const pipeline::StageProblem &problem) {
    pipeline::StageCut fastest = pipeline::cutStages(problem);
    auto request = sharding::findRequest(module, "stage_memory");
    auto bytes =
        request ? request.getValue().getAs<IntegerAttr>("bytes") : nullptr;
    if (!bytes || !fastest.problem.empty())
      return fastest;
    pipeline::StageProblem limited = problem;
    if (failed(schedule::limitStages(
            module, calls, target, bytes.getInt(),
            plan::scheduleOf(splitBackward, layout.chunks, forwardsFirst),
            limited)))
      return failure();
    pipeline::StageCut cut = pipeline::cutStages(limited);
    if (!cut.problem.empty() || cut.begins == fastest.begins)
      return fastest;
    llvm::raw_string_ostream(memoryWhy)
        << llvm::format(" (%.3g ms by another cut, ", 1e3 * fastest.seconds)
        << "which does not fit the memory of a device)";
    return cut;
  }

  static std::string nameOf(sharding::CallOp call) {
    return (call.getPath().empty() ? call.getCallee() : call.getPath()).str();
  }

  /// Of a micro-batch, forward and backward.
  FailureOr<double> secondsOf(sharding::CallOp call) {
    double seconds = 0;
    bool any = false;
    for (StringRef part : {".forward", ".backward"}) {
      auto function =
          symbols.lookup<func::FuncOp>((call.getCallee() + part).str());
      if (!function)
        continue;
      any = true;
      FailureOr<double> own = secondsOf(function);
      if (failed(own))
        return failure();
      seconds += *own;
    }
    if (!any)
      return secondsOf(symbols.lookup<func::FuncOp>(call.getCallee()));
    return seconds;
  }

  FailureOr<double> secondsOf(func::FuncOp function) {
    auto [entry, isNew] = known.try_emplace(function.getName(), 0.0);
    if (!isNew)
      return entry->second;
    size_t gradients = 0;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      auto binding =
          function.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
      gradients += binding && binding.getKind() == aten::BindingKind::ParamGrad;
    }
    const std::vector<GradientMode> modes(gradients);
    FailureOr<plan::Function> exported =
        exportFunction(function, modes, device, Reuse::AnyDead);
    if (failed(exported))
      return failure();
    return known[function.getName()] = eagerCost(*exported, target).seconds;
  }

  /// A unit belongs to the stage that reads its parameters, and is cut where
  /// stages read others of them. What several stages read is a unit of the
  /// first of them, and a copy of it in each other; chunks of one stage have it
  /// together.
  void placeUnits() {
    llvm::StringMap<SmallVector<int64_t>> stagesOfParam;
    llvm::StringMap<StringRef> ownName; // of aliases
    for (auto param : module.getOps<sharding::ParamOp>())
      if (auto aliases = param.getAliases())
        for (auto alias : aliases->getAsRange<StringAttr>())
          ownName[alias.getValue()] = param.getFqn();
    for (sharding::CallOp call : calls) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      for (unsigned i = 0; i < callee.getNumArguments(); ++i) {
        auto name =
            callee.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr);
        if (!name)
          continue;
        std::string fqn = call.bindParam(name.getValue());
        if (auto own = ownName.find(fqn); own != ownName.end())
          fqn = own->second.str();
        // Calls are in the order of stages.
        SmallVector<int64_t> &stages = stagesOfParam[fqn];
        if (stages.empty() || stages.back() != sharding::stageOf(call))
          stages.push_back(sharding::stageOf(call));
      }
    }
    for (auto unit : llvm::to_vector(module.getOps<sharding::UnitOp>()))
      placeUnit(unit, stagesOfParam);
    for (auto param : module.getOps<sharding::ParamOp>())
      if (auto unit = unitOfParam.find(param.getFqn());
          unit != unitOfParam.end())
        param.setUnitAttr(unit->second);
  }

  void placeUnit(sharding::UnitOp unit,
                 const llvm::StringMap<SmallVector<int64_t>> &stagesOfParam) {
    Builder builder(module.getContext());
    llvm::MapVector<SmallVector<int64_t>, SmallVector<Attribute>,
                    std::map<SmallVector<int64_t>, unsigned>>
        byStages;
    for (auto fqn : unit.getParams().getAsRange<StringAttr>()) {
      SmallVector<int64_t> stages = stagesOfParam.lookup(fqn.getValue());
      if (stages.empty())
        stages.push_back(0);
      byStages[stages].push_back(fqn);
    }
    sharding::UnitOp last = unit;
    auto whole = cast<sharding::UnitOp>(unit->clone());
    bool first = true;
    auto place = [&](const std::string &suffix, int64_t stage,
                     ArrayRef<Attribute> params) {
      if (!first) {
        OpBuilder after(module.getContext());
        after.setInsertionPointAfter(last);
        last = cast<sharding::UnitOp>(after.clone(*whole.getOperation()));
        last.setName((unit.getName() + suffix).str());
      }
      last.setParamsAttr(builder.getArrayAttr(params));
      last->setAttr(
          sharding::stageAttr,
          builder.getI64IntegerAttr(layout.stageOf(static_cast<int>(stage))));
      gatherTwice(last);
      first = false;
    };
    // What one stage alone reads keeps the name.
    auto sets = byStages.takeVector();
    std::stable_partition(sets.begin(), sets.end(), [](const auto &set) {
      return set.first.size() == 1;
    });
    for (auto &[readers, params] : sets) {
      const bool tied = readers.size() > 1;
      llvm::SmallSet<int, 4> ranks;
      ranks.insert(layout.stageOf(static_cast<int>(readers.front())));
      place(suffixOf(readers.front(), tied), readers.front(), params);
      const StringAttr owner = last.getNameAttr();
      for (Attribute fqn : params)
        unitOfParam[cast<StringAttr>(fqn).getValue()] = owner;
      if (llvm::all_of(readers, [&](int64_t reader) {
            return ranks.contains(layout.stageOf(static_cast<int>(reader)));
          }))
        continue;
      sumOverStages(last);
      for (int64_t stage : ArrayRef(readers).drop_front()) {
        if (!ranks.insert(layout.stageOf(static_cast<int>(stage))).second)
          continue;
        place(suffixOf(stage, tied), stage, params);
        last->setAttr(sharding::copyOfAttr, owner);
        sumOverStages(last);
      }
    }
    whole->erase();
  }

  /// "@stage1", "@stage1.chunk1-tied".
  std::string suffixOf(int64_t number, bool tied) const {
    const int place = static_cast<int>(number);
    std::string suffix = "@stage" + std::to_string(layout.stageOf(place));
    if (const int chunk = layout.chunkOf(place))
      suffix += ".chunk" + std::to_string(chunk);
    return tied ? suffix + "-tied" : suffix;
  }

  void sumOverStages(sharding::UnitOp unit) {
    SmallVector<Attribute> axes = {
        StringAttr::get(module.getContext(), plan::pipelineAxis)};
    axes.append(unit.getReplicateAxes().begin(), unit.getReplicateAxes().end());
    unit.setReplicateAxesAttr(ArrayAttr::get(module.getContext(), axes));
  }

  /// What the reshard decision says holds for one micro-batch after the other,
  /// but for what every rank holds all the time.
  void gatherTwice(sharding::UnitOp unit) {
    unit.setKeepGathered(false);
    if (unit.getShardAxes().empty() ||
        unit.getReshardAttr().getAfterForward() ||
        unit.getReshardAttr().getWhole())
      return;
    unit.setReshardAttr(sharding::ReshardAttr::get(
        module.getContext(), true, /*whole=*/false,
        sharding::BecauseAttr::get(
            module.getContext(),
            "other micro-batches of the stage run before the backward")));
  }

  mlir::ModuleOp module;
  SymbolTable symbols;
  const plan::ChunkLayout layout;
  const bool splitBackward, forwardsFirst;
  const Target &target;
  std::string memoryWhy; // what memory changed
  aten::Device device = aten::Device::Cpu;
  SmallVector<sharding::CallOp> calls;
  llvm::StringMap<double> known;           // seconds by function
  llvm::StringMap<StringAttr> unitOfParam; // by FQN
};

struct CutStagesPass : accel::impl::CutStagesPassBase<CutStagesPass> {
  using Base::Base;

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    const int64_t stages = mesh ? mesh.axisSize(plan::pipelineAxis) : 1;
    if (stages <= 1)
      return;
    int chunks = 1;
    bool splitBackward = false, forwardsFirst = false;
    if (auto request = sharding::findRequest(module, "pipeline")) {
      if (auto asked = request.getValue().getAs<IntegerAttr>("chunks"))
        chunks = static_cast<int>(asked.getInt());
      splitBackward = request.getValue().contains("split_backward");
      forwardsFirst = request.getValue().contains("forwards_first");
    }
    const plan::ChunkLayout layout(static_cast<int>(stages), chunks,
                                   plan::scheduleOf(splitBackward, chunks));
    auto job = sharding::findOnly<sharding::JobOp>(module);
    std::string name = target;
    if (name.empty())
      name = job && job.getDevice() == "cpu" ? "cpu" : "h100-sxm-80gb";
    accel::DiagnosticEngine problems;
    std::optional<Target> machine = loadTarget(name, problems);
    if (!machine) {
      module.emitError("cut-stages knows no target '") << name << "'";
      return signalPassFailure();
    }
    if (failed(
            StageCutter(module, layout, splitBackward, forwardsFirst, *machine)
                .run()))
      return signalPassFailure();
  }
};

} // namespace
