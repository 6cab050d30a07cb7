//===- BuildPlan.cpp - From a scheduled module to its plan ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Export/BuildPlan.h"

#include "dialects/Schedule/Convert.h"
#include "dialects/Sharding/Pipeline.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Export/ExportFunction.h"
#include "passes/PipelineSchedules/Schedule.h"
#include "runtime/plan/Deterministic.h"

#include "llvm/ADT/StringMap.h"

#include <algorithm>

using namespace mlir;

namespace accel {
namespace {

class Translator {
public:
  Translator(mlir::ModuleOp module, plan::Plan &plan)
      : module(module), plan(plan), symbols(module) {}

  LogicalResult run() {
    if (failed(buildSkeleton(module, plan)))
      return failure();
    for (auto program : module.getOps<schedule::ProgramOp>())
      if (failed(addProgram(program)))
        return failure();
    if (failed(addOrders()))
      return failure();
    if (plan.stepOf(0).empty())
      return module.emitError(
          "the module has no schedule.program to train with");
    return success();
  }

private:
  LogicalResult addProgram(schedule::ProgramOp op) {
    for (auto call : op.getBody().getOps<schedule::CallOp>())
      if (failed(addFunction(call)))
        return failure();
    FailureOr<plan::Program> program = schedule::exportProgram(
        op, plan, [&](StringRef name) { return known.lookup(name); });
    if (failed(program))
      return failure();
    const int index = static_cast<int>(plan.programs.size());
    const bool staged = op->hasAttr(schedule::stageAttr);
    if (staged && plan.stages.size() <= static_cast<size_t>(program->stage))
      plan.stages.resize(program->stage + 1);
    // "stage1.middle", "stage1.chunk1.middle"
    const StringRef name = StringRef(program->name).rsplit('.').second;
    const StringRef kind = staged ? name : StringRef(program->name);
    plan::Chunk *chunk = nullptr;
    if (staged) {
      plan::Stage &stage = plan.stages[program->stage];
      if (stage.further.size() < static_cast<size_t>(program->chunk))
        stage.further.resize(program->chunk);
      chunk = program->chunk ? &stage.further[program->chunk - 1] : &stage;
    }
    auto &step = staged ? chunk->step : plan.step;
    if (kind == "eval")
      (staged ? chunk->eval : plan.eval) = index;
    else
      step.emplace_back(index,
                        kind == "middle" ? plan.job.accumulation - 2 : 1);
    plan.programs.push_back(std::move(*program));
    return success();
  }

  /// In which order the stages run the parts of their programs.
  LogicalResult addOrders() {
    if (plan.stages.empty())
      return success();
    plan.schedule =
        sharding::scheduleOf(sharding::findOnly<sharding::GraphOp>(module));
    const plan::ChunkLayout layout = plan::chunkLayoutOf(plan);
    pipeline::Problem problem;
    problem.kind = pipeline::findKind(plan.schedule)->kind;
    problem.chunks = layout.chunks;
    problem.stages = layout.count();
    problem.microBatches = static_cast<int>(plan.job.accumulation);
    if (std::string why = pipeline::check(problem); !why.empty())
      return module.emitError("no order of the stages: ") << why;
    const pipeline::Schedule made = pipeline::makeSchedule(problem);
    for (int stage = 0; stage < layout.stages; ++stage)
      addOrder(stage, layout, made.ranks[stage]);
    return success();
  }

  void addOrder(int index, const plan::ChunkLayout &layout,
                const std::vector<pipeline::Action> &actions) {
    plan::Stage &stage = plan.stages[index];
    // A stage of several chunks awaits what a backward has sent behind its next
    // one: the two stages that send each other gradients would wait for ever.
    // Sums with other stages, of the last micro-batches, follow all backwards.
    const int64_t last = plan.job.accumulation - 1;
    struct Sent {
      plan::StageAction settle;
      bool followed = false; // by another backward
      bool finished = false; // gradients of parameters are made too
    };
    std::vector<Sent> sent;
    auto settle = [&] {
      std::erase_if(sent, [&](const Sent &one) {
        if (one.followed && one.finished)
          stage.order.push_back(one.settle);
        return one.followed && one.finished;
      });
    };
    const bool split = plan::splitsBackward(plan.schedule);
    for (const pipeline::Action &action : actions) {
      const plan::StageAction part = {partOf(action.pass), action.microBatch,
                                      layout.chunkOf(action.stage)};
      stage.order.push_back(part);
      if (part.part == plan::Part::Forward)
        continue;
      const plan::StageAction settlement = {plan::Part::Settle, part.microBatch,
                                            part.chunk};
      for (Sent &one : sent) {
        one.followed |= part.part == plan::Part::Backward;
        one.finished |= one.settle == settlement;
      }
      settle();
      if (part.part == plan::Part::Backward && layout.chunks > 1 &&
          part.microBatch < last)
        sent.push_back({settlement, false, !split});
    }
    for (const Sent &one : sent)
      stage.order.push_back(one.settle);
    for (int chunk = 0; layout.chunks > 1 && chunk < layout.chunks; ++chunk)
      stage.order.push_back({plan::Part::Settle, last, chunk});
    // The first chunk's has the norm.
    for (int chunk = 0; chunk < layout.chunks; ++chunk) {
      const int program = plan.programOf(index, chunk, last);
      if (partsOf(plan.programs[program]).size() - 1 >
          plan.positionOf(plan::Part::Update))
        stage.order.push_back({plan::Part::Update, last, chunk});
    }
    countFrames(index);
  }

  static plan::Part partOf(pipeline::Pass pass) {
    return pass == pipeline::Pass::Forward          ? plan::Part::Forward
           : pass == pipeline::Pass::BackwardWeight ? plan::Part::Weights
                                                    : plan::Part::Backward;
  }

  void countFrames(int index) {
    plan::Stage &stage = plan.stages[index];
    int64_t now = 0;
    for (const plan::StageAction &action : stage.order) {
      const plan::Program &program =
          plan.programs[plan.programOf(index, action.chunk, action.microBatch)];
      if (action.part == plan::Part::Forward)
        stage.frames = std::max(stage.frames, ++now);
      now -= plan.positionOf(action.part) + 2 == partsOf(program).size();
    }
  }

  /// The function of a call, unless an earlier call had it.
  LogicalResult addFunction(schedule::CallOp call) {
    auto [entry, added] = known.try_emplace(call.getCallee());
    if (added) {
      auto function = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!function)
        return call.emitOpError("calls '")
               << call.getCallee() << "', which is no function of the module";
      FailureOr<plan::Function> exported =
          exportFunction(function, plan.device == "cpu" ? aten::Device::Cpu
                                                        : aten::Device::Cuda);
      if (failed(exported) || failed(verifyBits(function, *exported)))
        return failure();
      entry->second = static_cast<int>(plan.functions.size());
      plan.functions.push_back(std::move(*exported));
    }
    if (failed(verifyCall(call, plan.functions[entry->second])))
      return failure();
    return verifyGradients(call,
                           symbols.lookup<func::FuncOp>(call.getCallee()));
  }

  /// Refuses kernels that give other bits each time where the job asks for the
  /// same.
  LogicalResult verifyBits(func::FuncOp function, const plan::Function &f) {
    if (!plan.job.deterministic || plan.device == "cpu")
      return success();
    for (const plan::Instruction &instruction : f.instructions)
      if (plan::bitsOnCuda(instruction, f.slots) != plan::Bits::Same)
        return emitError(function.getLoc(), "'deterministic: true': ")
               << instruction.op << (instruction.where.empty() ? "" : " of ")
               << instruction.where
               << " gives other bits each time on CUDA, and there is no kernel "
                  "that gives the same [not-supported]";
    return success();
  }

  /// An edited call may have become one of another function.
  LogicalResult verifyCall(schedule::CallOp call, const plan::Function &f) {
    auto complain = [&](size_t count, StringRef what, size_t expected) {
      return call.emitOpError("has ")
             << count << " " << what << ", '" << f.name << "' has " << expected;
    };
    if (call.getInputs().size() != f.inputs.size())
      return complain(call.getInputs().size(), "inputs", f.inputs.size());
    if (call.getParams().size() != f.params.size())
      return complain(call.getParams().size(), "parameters", f.params.size());
    if (call.getGradients().size() != f.gradients.size())
      return complain(call.getGradients().size(), "gradients",
                      f.gradients.size());
    const size_t results = call.getOutputs().size() + call.getDrops().size();
    if (results != f.outputs.size())
      return complain(results, "results", f.outputs.size());
    return success();
  }

  LogicalResult verifyGradients(schedule::CallOp call, func::FuncOp function) {
    auto gradients = call.getGradients().getAsRange<schedule::GradientAttr>();
    auto next = gradients.begin();
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      auto destination =
          function.getResultAttrOfType<schedule::DestinationAttr>(
              i, schedule::destinationAttr);
      if (!destination)
        continue;
      schedule::GradientAttr gradient = *next++;
      if (gradient.getAccumulate() != destination.getAccumulate())
        return call.emitOpError(gradient.getAccumulate() ? "adds to" : "writes")
               << " the gradient of '" << gradient.getFqn() << "', '"
               << function.getName() << "' "
               << (destination.getAccumulate() ? "adds to" : "writes") << " it";
    }
    return success();
  }

  mlir::ModuleOp module;
  plan::Plan &plan;
  SymbolTable symbols;
  llvm::StringMap<int> known; // Plan::functions
};

} // namespace

LogicalResult buildPlan(mlir::ModuleOp module, plan::Plan &plan) {
  return Translator(module, plan).run();
}

} // namespace accel
