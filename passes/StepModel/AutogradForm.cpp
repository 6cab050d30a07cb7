//===- AutogradForm.cpp - Temporaries of autograd's formulas --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/SegmentGraph.h"
#include "runtime/plan/Operands.h"

namespace accel {
namespace {

using plan::Arg;
using plan::Instruction;

/// Two derivative rules save memory that autograd's do not: the mean's
/// gradient is divided before it is expanded, and the square's slope is made
/// of the value itself instead of its first power.
class AutogradForm {
public:
  explicit AutogradForm(SegmentGraph &graph)
      : graph(graph), function(graph.function) {}

  void run() {
    findForwardSlots();
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      if (graph.forward[i])
        continue;
      const std::string &op = function.instructions[i].op;
      if (op == "aten::expand" && followsDivision(i))
        materialize(i);
      else if (op == "aten::mul.Scalar" && readsForward(i))
        insertPower(i++);
    }
  }

private:
  bool sameNode(size_t a, size_t b) const {
    return graph.node[a] == graph.node[b] && !graph.forward[b];
  }

  void findForwardSlots() {
    ofForward.assign(function.slots.size(), false);
    for (int i = 0; i < graph.inputs; ++i)
      ofForward[function.inputs[i]] = true;
    for (size_t i = 0; i < function.instructions.size(); ++i)
      if (graph.forward[i])
        for (int slot : function.instructions[i].results)
          if (slot >= 0)
            ofForward[slot] = true;
  }

  bool readsForward(size_t i) const {
    const Instruction &instr = function.instructions[i];
    return !instr.args.empty() && instr.args[0].kind == Arg::Kind::Tensor &&
           ofForward[instr.args[0].slot];
  }

  /// sum_backward(...) / n of FunctionsManual.cpp's mean_backward.
  bool followsDivision(size_t i) const {
    for (size_t k = i; k-- > 0 && sameNode(i, k);)
      if (function.instructions[k].op == "aten::div.Scalar")
        return true;
    return false;
  }

  void materialize(size_t i) {
    Instruction &instr = function.instructions[i];
    const int slot = instr.results.front();
    const int old = function.slots[slot].base;
    // Views of the expanded tensor follow it.
    std::vector<bool> moves(function.slots.size(), false);
    moves[slot] = true;
    for (size_t k = i + 1; k < function.instructions.size(); ++k) {
      const Instruction &later = function.instructions[k];
      if (!graph.view[k] || later.args.empty() ||
          later.args[0].kind != Arg::Kind::Tensor || !moves[later.args[0].slot])
        continue;
      for (int result : later.results)
        if (result >= 0)
          moves[result] = true;
    }
    for (size_t s = 0; s < moves.size(); ++s)
      if (moves[s] && function.slots[s].base == old)
        function.slots[s].base = slot;
    graph.view[i] = false;
    instr.movedBytes = bytesOf(slot);
  }

  double bytesOf(int slot) const {
    return plan::movedBytesOf(function.slots[slot]);
  }

  /// pow_backward: grad * (exponent * self.pow(exponent - 1)), whose
  /// temporaries live to the end of the expression.
  void insertPower(size_t i) {
    size_t product = i + 1;
    if (product >= function.instructions.size() || !sameNode(i, product) ||
        function.instructions[product].op != "aten::mul.Tensor")
      return;
    const int self = function.instructions[i].args[0].slot;
    const int power = static_cast<int>(function.slots.size());
    plan::Slot slot = function.slots[self];
    slot.base = power;
    function.slots.push_back(slot);
    ofForward.push_back(false);
    Instruction instr;
    instr.op = "aten::pow.Tensor_Scalar";
    instr.args.push_back(function.instructions[i].args[0]);
    instr.results = {power};
    instr.where = function.instructions[i].where;
    instr.movedBytes = 2 * bytesOf(power);
    function.instructions[i].args[0].slot = power;
    function.instructions[product].args.push_back(
        function.instructions[i].args[0]);
    graph.insert(i, instr, /*isForward=*/false, /*isView=*/false);
  }

  SegmentGraph &graph;
  plan::Function &function;
  std::vector<bool> ofForward; // by slot
};

} // namespace

void toAutogradForm(SegmentGraph &graph) { AutogradForm(graph).run(); }

void writeDerivativesInPlace(SegmentGraph &graph) {
  plan::Function &function = graph.function;
  std::vector<bool> made(function.slots.size(), false); // by a kernel of here
  auto write = [&](int result, const Arg &over) {
    if (result < 0 || over.kind != Arg::Kind::Tensor || over.slot < 0)
      return;
    const int target = function.slots[over.slot].base;
    if (!made[target] ||
        function.slots[over.slot].dtype != function.slots[result].dtype)
      return;
    for (plan::Slot &slot : function.slots)
      if (slot.base == result)
        slot.base = target;
  };
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction &instr = function.instructions[i];
    if (instr.op == "fused::swiglu_backward")
      for (size_t k : {size_t(0), size_t(1)})
        write(instr.results[k], instr.args[k + 1]);
    else if (instr.op == "aten::_fused_rms_norm_backward")
      write(instr.results[0], instr.args[0]);
    if (!graph.view[i])
      for (int slot : instr.results)
        if (slot >= 0 && function.slots[slot].base == slot)
          made[slot] = true;
  }
}

} // namespace accel
