//===- BuildProgram.cpp - From segment calls to a program -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/BuildProgram.h"

#include <set>

namespace accel::schedule {
namespace {

using plan::Role;
using plan::Step;
using plan::StepKind;

/// Which part of the optimizer step a program is.
struct Slot {
  bool first = true, last = true;
};

class ProgramBuilder {
public:
  ProgramBuilder(plan::Plan &plan, const Graph &graph,
                 const BuildOptions &options, const FunctionProvider &function,
                 Slot slot)
      : plan(plan), graph(graph), options(options), function(function),
        slot(slot), gathered(plan.units.size(), false),
        usesLeft(plan.units.size(), 0), contributionsLeft(plan.units.size(), 0),
        gradientSeen(plan.parameters.size(), false),
        hasGradient(plan.units.size(), false) {}

  std::string buildTraining(std::string name) {
    program.name = std::move(name);
    bindInputs();
    addInput("loss_seed", plan::DType::F32, {});
    countUses();
    saved.resize(graph.calls.size());
    for (size_t i = 0; i < graph.calls.size(); ++i) {
      forward(i);
      if (!error.empty())
        return error;
    }
    tangent.assign(graph.values.size(), -1);
    tangent[graph.loss] = program.inputs.back();
    startBackward();
    for (size_t i = graph.calls.size(); i-- > 0;)
      if (!graph.calls[i].backwardFunction.empty())
        backward(i);
    program.loss = valueOf[graph.loss];
    if (error.empty() && slot.last && !options.updateInline)
      update();
    return error;
  }

  std::string buildEval() {
    program.name = "eval";
    bindInputs();
    for (const SegmentCall &call : graph.calls)
      for (int u : unitsOf(call.evalParams))
        ++usesLeft[u];
    for (const SegmentCall &call : graph.calls) {
      gather(call.evalParams, call.path);
      Step step = makeCall(call.path);
      step.function = function(call.evalFunction, {});
      step.params = call.evalParams;
      for (int v : call.inputs)
        step.inputs.push_back(valueOf[v]);
      addOutputs(step, call.outputs, 0);
      if (!error.empty())
        return error;
      program.steps.push_back(std::move(step));
      release(call.evalParams, /*always=*/true, call.path);
    }
    program.loss = valueOf[graph.loss];
    return error;
  }

  plan::Program program;

private:
  void addInput(const std::string &name, plan::DType dtype,
                std::vector<int64_t> shape) {
    program.inputs.push_back(addValue(name, dtype, std::move(shape)));
  }

  int addValue(std::string name, plan::DType dtype,
               std::vector<int64_t> shape) {
    plan::Value value;
    value.name = std::move(name);
    value.dtype = dtype;
    int64_t bytes = plan::itemSize(dtype);
    for (int64_t size : shape)
      bytes *= size;
    value.bytes = plan::alignedBytes(bytes);
    value.shape = std::move(shape);
    program.values.push_back(std::move(value));
    return static_cast<int>(program.values.size()) - 1;
  }

  void bindInputs() {
    valueOf.assign(graph.values.size(), -1);
    for (int v : graph.inputs) {
      const GraphValue &value = graph.values[v];
      addInput(value.name, value.dtype, value.shape);
      valueOf[v] = program.inputs.back();
    }
  }

  Step makeCall(const std::string &path) {
    Step step;
    step.kind = StepKind::Call;
    step.where = path;
    return step;
  }

  Step &addStep(StepKind kind, int unit, Role role, const std::string &where) {
    Step step;
    step.kind = kind;
    step.stream = plan::defaultStream(kind);
    step.unit = unit;
    step.role = role;
    step.where = where;
    program.steps.push_back(std::move(step));
    return program.steps.back();
  }

  void startAndAwait(StepKind kind, int unit, Role role,
                     const std::vector<std::string> &axes, bool accumulate,
                     const std::string &where) {
    Step &start = addStep(kind, unit, role, where);
    start.axes = axes;
    start.timepoint = timepoints;
    start.accumulate = accumulate;
    if (kind == StepKind::ReduceScatter)
      start.algorithm = axes.empty() ? "direct" : options.reduceScatter;
    addStep(StepKind::Await, unit, role, where).timepoint = timepoints++;
  }

  /// How often each unit is read and written in this program.
  void countUses() {
    for (const SegmentCall &call : graph.calls) {
      for (int u : unitsOf(call.forwardParams))
        ++usesLeft[u];
      for (int u : unitsOf(call.gradients))
        ++contributionsLeft[u];
    }
  }

  void startBackward() {
    for (const SegmentCall &call : graph.calls)
      for (int u : unitsOf(call.backwardParams))
        ++usesLeft[u];
    // What the backward does not read is not kept for it.
    for (size_t u = 0; u < gathered.size(); ++u)
      if (gathered[u] && usesLeft[u] == 0)
        freeGathered(static_cast<int>(u), "");
  }

  static std::vector<int> unitsOf(const std::vector<plan::ParamRef> &params) {
    std::set<int> units;
    for (const plan::ParamRef &p : params)
      units.insert(p.unit);
    return {units.begin(), units.end()};
  }

  void gather(const std::vector<plan::ParamRef> &params,
              const std::string &where) {
    for (int u : unitsOf(params)) {
      if (gathered[u] || plan::readsShard(plan, plan.units[u]))
        continue;
      gathered[u] = true;
      addStep(StepKind::Alloc, u, Role::Gathered, where);
      startAndAwait(StepKind::AllGather, u, Role::Gathered,
                    plan.units[u].shardAxes, false, where);
    }
  }

  void freeGathered(int unit, const std::string &where) {
    addStep(StepKind::Free, unit, Role::Gathered, where);
    gathered[unit] = false;
  }

  void release(const std::vector<plan::ParamRef> &params, bool always,
               const std::string &where) {
    for (int u : unitsOf(params))
      if (--usesLeft[u] == 0 && gathered[u] &&
          (always || options.units[u].reshardAfterForward))
        freeGathered(u, where);
  }

  /// Values for results `offset...` of the step's function; results that share
  /// a storage share it as values too.
  void addOutputs(Step &step, const std::vector<int> &graphValues, int numMore,
                  std::vector<int> *more = nullptr) {
    if (step.function < 0) {
      error = "a function of '" + step.where + "' could not be exported";
      return;
    }
    const plan::Function &f = plan.functions[step.function];
    for (size_t i = 0; i < f.outputs.size(); ++i) {
      const plan::Slot &slot = f.slots[f.outputs[i]];
      bool inGraph = i < graphValues.size();
      int v = addValue(inGraph ? graph.values[graphValues[i]].name
                               : step.where + ":" + std::to_string(i),
                       slot.dtype, slot.shape);
      int base = slot.base;
      for (size_t j = 0; j < i; ++j)
        if (f.slots[f.outputs[j]].base == base) {
          program.values[v].alias = step.outputs[j];
          program.values[v].bytes = 0;
          break;
        }
      if (base >= 0 && base != f.outputs[i])
        if (program.values[v].alias < 0)
          program.values[v].bytes = f.slotBytes(base);
      step.outputs.push_back(v);
      if (inGraph)
        valueOf[graphValues[i]] = v;
      else if (more)
        more->push_back(v);
    }
    if (f.outputs.size() != graphValues.size() + numMore)
      error = "function '" + f.name + "' returns " +
              std::to_string(f.outputs.size()) + " values, expected " +
              std::to_string(graphValues.size() + numMore);
  }

  void forward(size_t index) {
    const SegmentCall &call = graph.calls[index];
    if (call.forwardFunction.empty())
      return;
    gather(call.forwardParams, call.path);
    Step step = makeCall(call.path);
    step.function = function(call.forwardFunction, {});
    step.params = call.forwardParams;
    for (int v : call.inputs)
      step.inputs.push_back(valueOf[v]);
    addOutputs(step, call.outputs, call.numSaved, &saved[index]);
    drawAs(index, step);
    program.steps.push_back(std::move(step));
    release(call.forwardParams, /*always=*/false, call.path);
  }

  void backward(size_t index) {
    const SegmentCall &call = graph.calls[index];
    if (!error.empty())
      return;
    gather(call.backwardParams, call.path);
    allocateGradients(call);
    Step step = makeCall(call.path);
    std::vector<GradientSpec> modes;
    for (const plan::ParamRef &p : call.gradients) {
      bool accumulate =
          gradientSeen[p.parameter] || accumulatesFromBefore(p.unit);
      gradientSeen[p.parameter] = true;
      const plan::Unit &unit = plan.units[p.unit];
      modes.push_back(
          {accumulate, writesShard(p.unit) ? unit.storage : unit.reduce});
      step.gradients.push_back({p.unit, p.parameter, accumulate});
    }
    step.function = function(call.backwardFunction, modes);
    step.params = call.backwardParams;
    for (const BackwardOperand &operand : call.backwardOperands)
      step.inputs.push_back(operandValue(index, operand));
    addInputGradients(step, call);
    drawAs(index, step);
    program.steps.push_back(std::move(step));
    release(call.backwardParams, /*always=*/true, call.path);
    for (int u : unitsOf(call.gradients))
      if (--contributionsLeft[u] == 0)
        reduce(u, call.path);
  }

  /// A call and its backward draw the same numbers, different calls others.
  void drawAs(size_t index, Step &step) {
    if (step.function >= 0 && plan.functions[step.function].draws())
      step.draw = static_cast<int>(index);
  }

  int operandValue(size_t index, const BackwardOperand &operand) {
    const SegmentCall &call = graph.calls[index];
    switch (operand.kind) {
    case BackwardOperand::Kind::Input:
      return valueOf[call.inputs[operand.index]];
    case BackwardOperand::Kind::Output:
      return valueOf[call.outputs[operand.index]];
    case BackwardOperand::Kind::Saved:
      return saved[index][operand.index];
    case BackwardOperand::Kind::Tangent:
      if (tangent[call.outputs[operand.index]] < 0)
        error = "output " + std::to_string(operand.index) + " of '" +
                call.path + "' has no gradient";
      return tangent[call.outputs[operand.index]];
    case BackwardOperand::Kind::Carry:
      if (tangent[call.inputs[operand.index]] < 0)
        error = "input " + std::to_string(operand.index) + " of '" + call.path +
                "' has no gradient yet";
      return tangent[call.inputs[operand.index]];
    }
    return -1;
  }

  void addInputGradients(Step &step, const SegmentCall &call) {
    if (step.function < 0) {
      error = "a function of '" + step.where + "' could not be exported";
      return;
    }
    const plan::Function &f = plan.functions[step.function];
    size_t next = 0; // of the function's outputs
    if (call.forwardFunction.empty())
      for (int output : call.outputs) {
        const GraphValue &value = graph.values[output];
        valueOf[output] = addValue(value.name, value.dtype, value.shape);
        step.outputs.push_back(valueOf[output]);
        ++next;
      }
    for (size_t i = 0; i < call.inputGradients.size(); ++i) {
      int v = call.inputs[call.inputGradients[i]];
      if (tangent[v] >= 0 && !carries(call, call.inputGradients[i])) {
        error = "'" + graph.values[v].name + "' has two gradients, and '" +
                call.path + "' does not add them";
        return;
      }
      const plan::Slot &slot = f.slots[f.outputs[next++]];
      tangent[v] =
          addValue("grad " + graph.values[v].name, slot.dtype, slot.shape);
      step.outputs.push_back(tangent[v]);
    }
  }

  /// The gradient of this input is added to those of later segments.
  static bool carries(const SegmentCall &call, int input) {
    for (const BackwardOperand &operand : call.backwardOperands)
      if (operand.kind == BackwardOperand::Kind::Carry &&
          operand.index == input)
        return true;
    return false;
  }

  bool accumulatesFromBefore(int unit) const {
    if (slot.first)
      return false;
    return options.keepUnsharded || writesShard(unit);
  }
  bool writesShard(int unit) const {
    return plan::writesShardGradient(plan, plan.units[unit]);
  }

  void allocateGradients(const SegmentCall &call) {
    for (int u : unitsOf(call.gradients)) {
      if (hasGradient[u])
        continue;
      hasGradient[u] = true;
      if (!accumulatesFromBefore(u))
        addStep(StepKind::Alloc, u,
                writesShard(u) ? Role::ShardGradient : Role::Gradient,
                call.path);
    }
  }

  void reduce(int unit, const std::string &where) {
    const plan::Unit &u = plan.units[unit];
    if (options.keepUnsharded && !slot.last)
      return;
    if (!writesShard(unit)) {
      bool into = slot.first || options.keepUnsharded;
      bool receives =
          !u.shardAxes.empty() && options.reduceScatter == "all_to_all";
      if (receives)
        addStep(StepKind::Alloc, unit, Role::Receive, where);
      if (into)
        addStep(StepKind::Alloc, unit, Role::ShardGradient, where);
      startAndAwait(StepKind::ReduceScatter, unit, Role::Gradient, u.shardAxes,
                    !into, where);
      if (receives)
        addStep(StepKind::Free, unit, Role::Receive, where);
      addStep(StepKind::Free, unit, Role::Gradient, where);
    }
    if (!slot.last)
      return;
    if (!u.replicateAxes.empty())
      startAndAwait(StepKind::AllReduce, unit, Role::ShardGradient,
                    u.replicateAxes, false, where);
    if (options.updateInline)
      updateUnit(unit, where);
  }

  void updateUnit(int unit, const std::string &where) {
    addStep(StepKind::Optimizer, unit, Role::ShardGradient, where);
    addStep(StepKind::Free, unit, Role::ShardGradient, where);
  }

  void update() {
    if (options.clip)
      addStep(StepKind::GradNorm, -1, Role::ShardGradient, "gradient norm");
    for (size_t u = plan.units.size(); u-- > 0;)
      if (hasGradient[u])
        updateUnit(static_cast<int>(u), plan.units[u].name);
  }

  plan::Plan &plan;
  const Graph &graph;
  const BuildOptions &options;
  const FunctionProvider &function;
  Slot slot;
  std::string error;
  int timepoints = 0;
  std::vector<int> valueOf; // graph value -> program value
  std::vector<int> tangent; // graph value -> program value of its gradient
  std::vector<std::vector<int>> saved; // per call
  std::vector<bool> gathered;
  std::vector<int> usesLeft, contributionsLeft; // per unit
  std::vector<bool> gradientSeen;               // per parameter
  std::vector<bool> hasGradient;                // per unit
};

} // namespace

std::string buildPrograms(plan::Plan &plan, const Graph &graph,
                          const BuildOptions &options,
                          const FunctionProvider &function) {
  auto add = [&](const std::string &name, Slot slot) {
    ProgramBuilder builder(plan, graph, options, function, slot);
    std::string error = builder.buildTraining(name);
    plan.programs.push_back(std::move(builder.program));
    return error;
  };
  auto addRepeated = [&](const std::string &name, Slot slot, int64_t repeat) {
    plan.step.emplace_back(static_cast<int>(plan.programs.size()), repeat);
    return add(name, slot);
  };
  std::string error;
  if (options.accumulation == 1) {
    error = addRepeated("train", {true, true}, 1);
  } else {
    error = addRepeated("first", {true, false}, 1);
    if (error.empty() && options.accumulation > 2)
      error = addRepeated("middle", {false, false}, options.accumulation - 2);
    if (error.empty())
      error = addRepeated("last", {false, true}, 1);
  }
  if (!error.empty())
    return error;
  ProgramBuilder eval(plan, graph, options, function, Slot());
  error = eval.buildEval();
  plan.eval = static_cast<int>(plan.programs.size());
  plan.programs.push_back(std::move(eval.program));
  return error;
}

} // namespace accel::schedule
