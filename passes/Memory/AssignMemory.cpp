//===- AssignMemory.cpp - Where activations are freed ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Memory/AssignMemory.h"

#include <algorithm>

namespace accel::schedule {
namespace {

using plan::Step;
using plan::StepKind;

class Assigner {
public:
  Assigner(const plan::Plan &plan, plan::Program &program)
      : plan(plan), program(program) {}

  void run() {
    dropValueFrees();
    findLastUses();
    std::vector<Step> steps;
    steps.reserve(program.steps.size());
    for (size_t s = 0; s < program.steps.size(); ++s) {
      Step step = std::move(program.steps[s]);
      std::vector<int> unused;
      if (step.kind == StepKind::Call)
        unused = giveUp(step, static_cast<int>(s));
      std::string where = step.where;
      steps.push_back(std::move(step));
      if (unused.empty())
        continue;
      Step free;
      free.kind = StepKind::Free;
      free.values = std::move(unused);
      free.where = std::move(where);
      steps.push_back(std::move(free));
    }
    program.steps = std::move(steps);
  }

private:
  void dropValueFrees() {
    std::erase_if(program.steps, [](const Step &step) {
      return step.kind == StepKind::Free && !step.values.empty();
    });
  }

  void findLastUses() {
    lastUse.assign(program.values.size(), -1);
    keep.assign(program.values.size(), false);
    for (int v : program.inputs)
      keep[v] = true;
    if (program.loss >= 0)
      keep[program.loss] = true;
    for (size_t s = 0; s < program.steps.size(); ++s)
      for (int v : program.steps[s].inputs)
        lastUse[v] = static_cast<int>(s);
  }

  /// Marks what the call consumes; returns what is to be freed after it.
  std::vector<int> giveUp(Step &step, int position) {
    std::vector<int> unused;
    step.consumed.assign(step.inputs.size(), false);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      int v = step.inputs[i];
      bool again = std::find(step.inputs.begin() + i + 1, step.inputs.end(),
                             v) != step.inputs.end();
      if (keep[v] || again || lastUse[v] != position)
        continue;
      if (drops(step.function, i))
        step.consumed[i] = true;
      else
        unused.push_back(v);
    }
    for (int v : step.outputs)
      if (v >= 0 && lastUse[v] < 0 && !keep[v])
        unused.push_back(v);
    return unused;
  }

  /// Whether the function's body reads input `i`, so that it can drop it.
  bool drops(int functionIndex, size_t input) const {
    const plan::Function &f = plan.functions[functionIndex];
    int slot = f.inputs[input];
    for (const plan::Instruction &instruction : f.instructions)
      if (std::find(instruction.frees.begin(), instruction.frees.end(), slot) !=
          instruction.frees.end())
        return true;
    return false;
  }

  const plan::Plan &plan;
  plan::Program &program;
  std::vector<int> lastUse;
  std::vector<bool> keep;
};

} // namespace

void assignMemory(const plan::Plan &plan, plan::Program &program) {
  Assigner(plan, program).run();
}

} // namespace accel::schedule
