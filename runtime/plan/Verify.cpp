//===- Verify.cpp - Is this plan safe to run? -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Verify.h"

#include "runtime/plan/Chunks.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Operators.h"
#include "runtime/plan/Timeline.h"
#include "runtime/plan/VerifyParts.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace accel::plan {

namespace {

// With these bounds no sum of bytes over a program can overflow.
constexpr int64_t maxTensorBytes = int64_t(1) << 45;
constexpr size_t maxTensors = 1 << 16;
constexpr size_t maxUnits = 1 << 13;

std::string bytesText(int64_t bytes) {
  return std::to_string(bytes) + " bytes";
}

class IndexVerifier {
public:
  IndexVerifier(const Plan &plan, Problems &problems)
      : plan(plan), problems(problems) {}
  void run();

private:
  template <typename T>
  bool inRange(const std::string &place, const char *what, int index,
               const std::vector<T> &range) {
    if (index >= 0 && static_cast<size_t>(index) < range.size())
      return true;
    problems.add(place, std::string("there is no ") + what + " " +
                            std::to_string(index));
    return false;
  }
  void checkSplit(const std::string &place, const Parameter &parameter) {
    std::set<int64_t> dims;
    std::set<std::string> axes;
    for (const AxisSplit &split : parameter.split) {
      const std::string axis = "the axis " + quoted(split.axis);
      if (std::none_of(plan.axes.begin(), plan.axes.end(),
                       [&](const Axis &a) { return a.name == split.axis; }))
        problems.add(place, "the mesh has no axis " + quoted(split.axis));
      else if (axisRole(split.axis) != AxisRole::Other &&
               split.axis != expertAxis)
        problems.add(place, axis + " splits no parameter inside of functions");
      else if (!axes.insert(split.axis).second ||
               !dims.insert(split.dim).second)
        problems.add(place, "a dimension or an axis is split twice");
      else if (split.dim < 0 || split.pieces < 1 ||
               split.dim >= static_cast<int64_t>(parameter.shape.size()) ||
               parameter.shape[split.dim] % split.pieces ||
               parameter.shape[split.dim] / split.pieces %
                   plan.axisSize(split.axis))
        problems.add(place, "dimension " + std::to_string(split.dim) +
                                " cannot be divided over " + axis);
    }
  }
  void checkInitializer(const std::string &place, const Parameter &parameter) {
    using Kind = Initializer::Kind;
    const Initializer &init = parameter.init;
    if (!std::isfinite(init.value) || !std::isfinite(init.low) ||
        !std::isfinite(init.high))
      problems.add(place, "its initial values are not finite");
    const bool normal =
        init.kind == Kind::Normal || init.kind == Kind::TruncatedNormal;
    if (normal && init.value < 0)
      problems.add(place, "its initial standard deviation is out of range");
    if ((init.kind == Kind::TruncatedNormal || init.kind == Kind::Uniform) &&
        !(init.low < init.high))
      problems.add(place, "the range of its initial values is empty");
    // What is drawn again and again must be found.
    if (init.kind == Kind::TruncatedNormal &&
        (init.low > 0 || init.high < 0 || init.value <= 0))
      problems.add(place, "its truncated normal does not contain its mean");
    if (init.kind == Kind::Sinusoids &&
        (init.value <= 0 || parameter.shape.size() != 2 ||
         parameter.shape[1] < 4 || parameter.shape[1] % 2))
      problems.add(place, "a table of sinusoids has an even number of columns, "
                          "at least 4");
    if (init.zeroRow >= 0 &&
        (parameter.shape.size() < 2 || init.zeroRow >= parameter.shape[0]))
      problems.add(place, "it has no row " + std::to_string(init.zeroRow));
  }
  void size(const std::string &place, const std::vector<int64_t> &shape,
            DType dtype);
  template <typename T, typename Name>
  void unique(const std::vector<T> &items, const char *what, Name name);
  void function(const Function &function);
  void program(const Program &program);
  void stages();

  const Plan &plan;
  Problems &problems;
};

void IndexVerifier::size(const std::string &place,
                         const std::vector<int64_t> &shape, DType dtype) {
  for (int64_t dim : shape)
    if (dim < 0) {
      problems.add(place, "a size is negative");
      return;
    }
  Parameter tensor;
  tensor.shape = shape;
  if (tensor.numel() > maxTensorBytes / itemSize(dtype))
    problems.add(place, "the tensor is larger than any memory");
}

template <typename T, typename Name>
void IndexVerifier::unique(const std::vector<T> &items, const char *what,
                           Name name) {
  std::set<std::string> seen;
  for (const T &item : items)
    if (!seen.insert(name(item)).second)
      problems.add(std::string(what) + " " + quoted(name(item)),
                   "the name is used twice");
}

void IndexVerifier::function(const Function &function) {
  const std::string at = "function " + quoted(function.name);
  if (function.slots.size() > maxTensors) {
    problems.add(at, "too many slots");
    return;
  }
  for (size_t i = 0; i < function.slots.size(); ++i) {
    const std::string place = at + ", slot " + std::to_string(i);
    const Slot &slot = function.slots[i];
    size(place, slot.shape, slot.dtype);
    if (inRange(place, "base slot", slot.base, function.slots) &&
        function.slots[slot.base].base != slot.base)
      problems.add(place, "its base, slot " + std::to_string(slot.base) +
                              ", is itself a view");
  }
  for (const std::vector<int> *list : {&function.inputs, &function.params,
                                       &function.gradients, &function.outputs})
    for (int slot : *list)
      inRange(at, "slot", slot, function.slots);
  if (function.paramNames.size() != function.params.size() ||
      function.gradientNames.size() != function.gradients.size())
    problems.add(at, "its parameters or gradients lack names");
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction &instruction = function.instructions[i];
    const std::string place =
        at + ", instruction " + std::to_string(i) + " (" + instruction.op + ")";
    if (!isExchange(instruction))
      if (std::string problem = operatorProblem(instruction); !problem.empty())
        problems.add(place, problem);
    for (const Arg &arg : instruction.args) {
      if (arg.kind == Arg::Kind::Tensor)
        inRange(place, "slot", arg.slot, function.slots);
      if (arg.kind == Arg::Kind::Tensors)
        for (int64_t slot : arg.ints)
          if (slot < -1 || slot >= int64_t(function.slots.size()))
            problems.add(place, "there is no slot " + std::to_string(slot));
      // Programs fill with infinities, and xlogy with what is not a number.
      if (arg.kind == Arg::Kind::Wrapped && !std::isfinite(arg.floatValue))
        problems.add(place, "an argument is not a number");
    }
    for (int slot : instruction.results)
      if (slot != -1)
        inRange(place, "slot", slot, function.slots);
    for (int slot : instruction.frees)
      inRange(place, "slot", slot, function.slots);
    if (instruction.workspaceBytes < 0 ||
        instruction.workspaceBytes > maxTensorBytes)
      problems.add(place, "its workspace is out of range");
    if (!(instruction.flops >= 0) || !std::isfinite(instruction.flops) ||
        !(instruction.movedBytes >= 0) ||
        !std::isfinite(instruction.movedBytes))
      problems.add(place, "its cost is out of range");
    if (instruction.op.find("::") == std::string::npos)
      problems.add(place, "the operator's name has no namespace");
    if (problems.empty() && isExchange(instruction))
      if (std::string problem = exchangeProblem(plan, function, instruction);
          !problem.empty())
        problems.add(place, problem);
  }
  if (problems.empty())
    if (std::string problem = startProblem(function); !problem.empty())
      problems.add(at, problem);
}

void IndexVerifier::program(const Program &program) {
  const std::string at = "program " + quoted(program.name);
  if (program.values.size() > maxTensors) {
    problems.add(at, "too many values");
    return;
  }
  for (const Value &value : program.values) {
    const std::string place = at + ", value " + quoted(value.name);
    size(place, value.shape, value.dtype);
    if (value.bytes < 0 || value.bytes > maxTensorBytes ||
        value.bytes % alignmentBytes)
      problems.add(place,
                   bytesText(value.bytes) + " is no multiple of the alignment");
    if (value.alias == -1)
      continue;
    if (!inRange(place, "value", value.alias, program.values))
      continue;
    if (program.values[value.alias].alias != -1)
      problems.add(place, "it aliases " +
                              quoted(program.values[value.alias].name) +
                              ", which is an alias itself");
    if (value.bytes != 0)
      problems.add(place, "an alias owns no bytes");
  }
  for (int value : program.inputs)
    inRange(at, "value", value, program.values);
  if (program.loss != -1)
    inRange(at, "value", program.loss, program.values);
  if (program.predictions != -1)
    inRange(at, "value", program.predictions, program.values);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const ProgramInstruction &instruction = program.instructions[i];
    const std::string place = at + ", instruction " + std::to_string(i) + " (" +
                              toString(instruction.kind) + ")";
    bool needsUnit =
        instruction.kind == ProgramInstructionKind::Alloc ||
        instruction.kind == ProgramInstructionKind::AllGather ||
        instruction.kind == ProgramInstructionKind::ReduceScatter ||
        instruction.kind == ProgramInstructionKind::AllReduce ||
        instruction.kind == ProgramInstructionKind::Optimizer ||
        (instruction.kind == ProgramInstructionKind::Offload &&
         instruction.inputs.empty()) ||
        (instruction.kind == ProgramInstructionKind::Free &&
         instruction.values.empty());
    const bool sends = instruction.kind == ProgramInstructionKind::Send;
    if (sends || instruction.kind == ProgramInstructionKind::Receive) {
      const auto &moved = sends ? instruction.inputs : instruction.outputs;
      if (instruction.shift == 0 ||
          !placeBeside(plan, program,
                       sends ? instruction.shift : -instruction.shift)
               .exists)
        problems.add(place, "there is no such stage");
      if (moved.size() != 1 || moved[0] < 0)
        problems.add(place, "it moves one value at a time");
    }
    if (needsUnit || instruction.unit != -1)
      inRange(place, "unit", instruction.unit, plan.units);
    if (instruction.kind == ProgramInstructionKind::Call ||
        instruction.function != -1)
      inRange(place, "function", instruction.function, plan.functions);
    for (const std::vector<int> *list :
         {&instruction.inputs, &instruction.values})
      for (int value : *list)
        inRange(place, "value", value, program.values);
    for (int value : instruction.outputs)
      if (value != -1)
        inRange(place, "value", value, program.values);
    for (const ParamRef &ref : instruction.params) {
      inRange(place, "unit", ref.unit, plan.units);
      inRange(place, "parameter", ref.parameter, plan.parameters);
    }
    for (const GradRef &ref : instruction.gradients) {
      inRange(place, "unit", ref.unit, plan.units);
      inRange(place, "parameter", ref.parameter, plan.parameters);
    }
  }
}

void IndexVerifier::run() {
  int64_t ranks = 1;
  for (const Axis &axis : plan.axes) {
    const std::string at = "mesh axis " + quoted(axis.name);
    if (axis.size < 1 || __builtin_mul_overflow(ranks, axis.size, &ranks) ||
        ranks > INT32_MAX) {
      problems.add(at, "its size is out of range");
      return;
    }
  }
  unique(plan.axes, "mesh axis", [](const Axis &a) { return a.name; });
  unique(plan.parameters, "parameter",
         [](const Parameter &p) { return p.fqn; });
  unique(plan.units, "unit", [](const Unit &u) { return u.name; });
  unique(plan.functions, "function", [](const Function &f) { return f.name; });
  unique(plan.programs, "program", [](const Program &p) { return p.name; });
  if (plan.units.size() > maxUnits)
    problems.add("units", "there are too many");
  for (const Parameter &parameter : plan.parameters) {
    const std::string at = "parameter " + quoted(parameter.fqn);
    inRange(at, "unit", parameter.unit, plan.units);
    size(at, parameter.shape, DType::F64);
    if (parameter.offset < 0 || parameter.offset > maxTensorBytes)
      problems.add(at, "its offset is out of range");
    checkSplit(at, parameter);
    checkInitializer(at, parameter);
  }
  for (const Unit &unit : plan.units) {
    const std::string at = "unit " + quoted(unit.name);
    for (int parameter : unit.parameters)
      inRange(at, "parameter", parameter, plan.parameters);
    if (unit.padded < 0 || unit.padded > maxTensorBytes / 8)
      problems.add(at, "its padded size is out of range");
    if (unit.states.size() > 8)
      problems.add(at, "it has too many optimizer states");
  }
  for (const Function &f : plan.functions)
    function(f);
  for (const Program &p : plan.programs)
    program(p);
  stages();
  if (plan.eval != -1)
    inRange("eval", "program", plan.eval, plan.programs);
}

/// Which stage holds and runs what; steps are of their programs.
void IndexVerifier::stages() {
  const int64_t ranks = plan.axisSize(pipelineAxis);
  const int64_t stages = static_cast<int64_t>(plan.stages.size());
  if (stages != (ranks > 1 ? ranks : 0))
    problems.add("stages", "there are " + std::to_string(stages) +
                               ", the mesh has " + std::to_string(ranks) +
                               " ranks along " + quoted(pipelineAxis));
  for (const Stage &stage : plan.stages)
    if (stage.further.size() != plan.stages.front().further.size())
      problems.add("stages", "they have different numbers of chunks");
  const bool several = plan.schedule == interleaved1F1B;
  if (plan.schedule == zeroBubbleV ? plan.numChunks() != 2
                                   : (plan.numChunks() > 1) != several)
    problems.add("schedule",
                 quoted(plan.schedule) + " is of stages with " +
                     (several                        ? "several chunks"
                      : plan.schedule == zeroBubbleV ? "two chunks each"
                                                     : "one chunk each"));
  if (stages > 0 && plan.axes.front().name != pipelineAxis)
    problems.add("mesh axis " + quoted(pipelineAxis), "it is not the first");
  if (stages > 0 && (!plan.step.empty() || plan.eval != -1))
    problems.add("step", "each stage of a pipeline has its own");
  for (const Unit &unit : plan.units) {
    if (unit.stage < 0 || unit.stage >= plan.numStages())
      problems.add("unit " + quoted(unit.name), "there is no such stage");
    if (unit.copyOf != -1)
      inRange("unit " + quoted(unit.name), "unit", unit.copyOf, plan.units);
  }
  for (const Program &program : plan.programs)
    if (program.stage < 0 || program.stage >= plan.numStages())
      problems.add("program " + quoted(program.name), "there is no such stage");
    else if (program.chunk < 0 || program.chunk >= plan.numChunks())
      problems.add("program " + quoted(program.name), "there is no such chunk");
  if (!problems.empty())
    return;
  const ChunkLayout layout = chunkLayoutOf(plan);
  for (int i = 0; i < layout.count(); ++i) {
    const int stage = layout.stageOf(i), chunk = layout.chunkOf(i);
    const std::string at =
        stages ? "step of stage " + std::to_string(stage) : "step";
    auto isElsewhere = [&](int program) {
      if (!inRange(at, "program", program, plan.programs))
        return;
      const Program &found = plan.programs[program];
      if (found.stage != stage)
        problems.add(at, quoted(found.name) + " is another stage's program");
      else if (found.chunk != chunk)
        problems.add(at, quoted(found.name) + " is another chunk's program");
    };
    if (const int eval = stages ? plan.evalOf(stage, chunk) : -1; eval != -1)
      isElsewhere(eval);
    for (const auto &[index, repeat] : plan.stepOf(stage, chunk)) {
      isElsewhere(index);
      if (repeat < 1)
        problems.add(at, "a program is repeated " + std::to_string(repeat) +
                             " times");
    }
  }
}

/// What the plan says about memory against what its programs do.
void verifyPredicted(const Plan &plan, Problems &problems) {
  Plan again = plan;
  predictMemory(again);
  auto compare = [&](const std::string &place, const char *what,
                     int64_t recorded, int64_t simulated) {
    if (recorded != simulated)
      problems.add(place, std::string("the recorded ") + what + " is " +
                              std::to_string(recorded) +
                              ", the timeline's is " +
                              std::to_string(simulated));
  };
  const Predicted &p = plan.predicted, &q = again.predicted;
  compare("predicted", "peak", p.peakBytes, q.peakBytes);
  compare("predicted", "peak of own buffers", p.ownPeakBytes, q.ownPeakBytes);
  compare("predicted", "persistent size", p.persistentBytes, q.persistentBytes);
  compare("predicted", "size on the host", p.hostBytes, q.hostBytes);
  compare("predicted", "size on the disk", p.diskBytes, q.diskBytes);
  compare("predicted", "peak instruction", p.peakInstruction,
          q.peakInstruction);
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const std::string at = "stage " + std::to_string(i);
    const Stage &stage = plan.stages[i], &other = again.stages[i];
    compare(at, "peak", stage.peakBytes, other.peakBytes);
    compare(at, "peak of own buffers", stage.ownPeakBytes, other.ownPeakBytes);
    compare(at, "persistent size", stage.persistentBytes,
            other.persistentBytes);
  }
  if (!(p.breakdown == q.breakdown))
    problems.add("predicted", "the breakdown is not the timeline's");
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const std::string at = "program " + quoted(plan.programs[i].name);
    compare(at, "peak", plan.programs[i].peakBytes,
            again.programs[i].peakBytes);
    compare(at, "peak instruction", plan.programs[i].peakInstruction,
            again.programs[i].peakInstruction);
  }
}

} // namespace

void verifyIndices(const Plan &plan, Problems &problems) {
  IndexVerifier(plan, problems).run();
}

std::vector<std::string> verify(const Plan &plan) {
  Problems problems;
  // Each stage relies on the ones before it.
  verifyIndices(plan, problems);
  if (!problems.empty())
    return problems.list;
  verifyUnits(plan, problems);
  verifyFunctions(plan, problems);
  if (!problems.empty())
    return problems.list;
  verifyStages(plan, problems);
  if (!problems.empty())
    return problems.list;
  verifyPrograms(plan, problems);
  if (problems.empty())
    verifyPredicted(plan, problems);
  return problems.list;
}

} // namespace accel::plan
