//===- JointFixture.h - Small joint graphs for tests ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_JOINTFIXTURE_H
#define ACCEL_TEST_UNIT_JOINTFIXTURE_H

#include "passes/Recompute/JointGraph.h"

#include <initializer_list>

namespace accel::test {

/// Builds a joint graph; tensors are f32, and their sizes are given in bytes.
/// Operations belong to the forward until the first tangent.
class JointBuilder {
public:
  int input(int64_t bytes) {
    graph.function.inputs.push_back(slot(bytes));
    return graph.function.inputs.back();
  }
  int param(int64_t bytes) {
    graph.function.params.push_back(slot(bytes));
    return graph.function.params.back();
  }
  int tangent(int64_t bytes) {
    backward();
    graph.tangents.push_back(slot(bytes));
    return graph.tangents.back();
  }
  void backward() { forward = false; }
  void output(int value) { graph.function.outputs.push_back(value); }
  void gradient(int value, bool ofParameter) {
    graph.gradients.push_back({value, ofParameter});
  }

  /// Adds an operation; returns its first result.
  int op(JointCategory category, const std::string &name,
         const std::vector<int> &operands, std::vector<int64_t> resultBytes,
         double flops = 0) {
    plan::Instruction &instruction = add(category, name, operands);
    instruction.flops = flops;
    for (int value : operands)
      instruction.movedBytes +=
          static_cast<double>(graph.function.slotBytes(value));
    graph.marks.back().intoPlace = name == "aten::mm";
    std::vector<int> results;
    for (int64_t bytes : resultBytes) {
      results.push_back(slot(bytes));
      instruction.movedBytes += static_cast<double>(bytes);
    }
    instruction.results = results;
    return results.front();
  }
  /// The last operation may not be computed twice.
  void mayNotRepeat() { graph.marks.back().mayRecompute = false; }
  int view(int value) {
    plan::Instruction &instruction =
        add(JointCategory::View, "aten::t", {value});
    plan::Slot copy = graph.function.slots[value];
    int index = static_cast<int>(graph.function.slots.size());
    instruction.results = {index};
    graph.function.slots.push_back(copy); // of the same base
    return index;
  }
  JointGraph finish() { return std::move(graph); }

private:
  int slot(int64_t bytes) {
    plan::Slot slot;
    slot.dtype = plan::DType::F32;
    slot.shape = {bytes / 4};
    slot.base = static_cast<int>(graph.function.slots.size());
    graph.function.slots.push_back(slot);
    return slot.base;
  }
  plan::Instruction &add(JointCategory category, const std::string &name,
                         const std::vector<int> &operands) {
    plan::Instruction instruction;
    instruction.op = name;
    for (int value : operands) {
      plan::Arg arg;
      arg.kind = plan::Arg::Kind::Tensor;
      arg.slot = value;
      instruction.args.push_back(arg);
    }
    graph.function.instructions.push_back(instruction);
    JointMark mark;
    mark.category = category;
    mark.forward = forward;
    mark.mayRecompute = forward;
    graph.marks.push_back(mark);
    return graph.function.instructions.back();
  }

  JointGraph graph;
  bool forward = true;
};

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_JOINTFIXTURE_H
