//===- Dequantize.cpp - Matmuls with quantised weights --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/Dequantize.h"
#include "runtime/plan/Operands.h"

#include <algorithm>

namespace accel {
namespace {

using plan::Arg;
using plan::Instruction;

/// What AutoGPTQ's PyTorch path moves for an element beside the packed weight
/// and the copy (auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py, forward):
/// shifted integers of 4 bytes are written and read, integers of 1 byte
/// written, masked (read and written), read for their zero points, and the
/// difference written and read.
constexpr int64_t shiftedBytes = 4, narrowBytes = 1;
constexpr int64_t unpackingBytes = 2 * shiftedBytes + 6 * narrowBytes;

class Dequantizer {
public:
  Dequantizer(SegmentGraph &graph, int parameter,
              const plan::QuantizedWeight &weight, bool byOperators)
      : graph(graph), function(graph.function),
        root(function.slots[parameter].base), weight(weight),
        byOperators(byOperators) {}

  void run(plan::QuantizedMatmul product) {
    dropCasts();
    if (product == plan::QuantizedMatmul::SavesCopy)
      return saveCopy();
    const bool holds = product == plan::QuantizedMatmul::DequantizesHoldsInput;
    if (holds || product == plan::QuantizedMatmul::DequantizesSavesInput)
      saveInputs(holds);
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      Instruction &instr = function.instructions[i];
      if (!isProduct(instr))
        continue;
      instr.workspaceBytes += rounded(weight.copyBytes);
      graph.insert(i, kernelBefore(instr), graph.forward[i], /*isView=*/false);
      ++i;
    }
  }

private:
  int64_t rounded(int64_t bytes) const {
    return (bytes + graph.rounding - 1) / graph.rounding * graph.rounding;
  }
  /// Nested scales are expanded, their mean is added in place, and the kernel
  /// reads the result.
  double copyTraffic() const {
    const int64_t scales = weight.expandedScaleBytes > 0
                               ? weight.expandedScaleBytes * 17 / 4
                           : weight.scales.empty() ? 0
                                                   : weight.scales.front();
    return static_cast<double>(weight.packedBytes + weight.copyBytes + scales);
  }

  /// The kernel that makes the copy, which no matmul hides: it runs before
  /// `product`, whose workspace the copy is.
  Instruction kernelBefore(const Instruction &product) const {
    Instruction instr;
    instr.op = "accel::dequantize";
    instr.args = {plan::tensorArg(root)};
    instr.where = product.where;
    instr.movedBytes = copyTraffic();
    return instr;
  }

  bool reads(const Instruction &instr) const {
    for (const Arg &arg : instr.args)
      if (arg.kind == Arg::Kind::Tensor && arg.slot >= 0 &&
          function.slots[arg.slot].base == root)
        return true;
    return false;
  }
  /// What autocast would copy of a wide weight the matmul makes itself.
  void dropCasts() {
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const Instruction &instr = function.instructions[i];
      if (instr.op != "aten::_to_copy" || graph.view[i] || !reads(instr))
        continue;
      graph.view[i] = true;
      const int copy = function.slots[instr.results.front()].base;
      for (plan::Slot &slot : function.slots)
        if (slot.base == copy)
          slot.base = root;
      function.instructions[i].movedBytes = 0;
    }
  }

  /// Reads the weight and is no view of it.
  bool isProduct(const Instruction &instr) const {
    const auto i = static_cast<size_t>(&instr - function.instructions.data());
    return !graph.view[i] && reads(instr);
  }

  /// The backward of each matmul reads the forward's input too.
  void saveInputs(bool holds) {
    std::vector<int> inputs; // of the forward's matmuls, in order
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const Instruction &instr = function.instructions[i];
      if (!graph.forward[i] || !isProduct(instr))
        continue;
      for (const Arg &arg : instr.args)
        if (arg.kind == Arg::Kind::Tensor && arg.slot >= 0 &&
            function.slots[arg.slot].base != root) {
          inputs.push_back(arg.slot);
          if (holds)
            graph.heldByNodes.insert(function.slots[arg.slot].base);
          break;
        }
    }
    // Derivatives run in the opposite order.
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      Instruction &instr = function.instructions[i];
      if (graph.forward[i] || !isProduct(instr) || inputs.empty())
        continue;
      instr.args.push_back(plan::tensorArg(inputs.back()));
      inputs.pop_back();
    }
  }

  /// The copy is a value of the forward that the backward reads.
  void saveCopy() {
    size_t at = 0;
    while (at < function.instructions.size() &&
           !reads(function.instructions[at]))
      ++at;
    if (at == function.instructions.size())
      return;
    const int copy = static_cast<int>(function.slots.size());
    plan::Slot slot = function.slots[root];
    slot.base = copy;
    function.slots.push_back(slot);
    for (plan::Slot &view : function.slots)
      if (view.base == root && &view != &function.slots[root])
        view.base = copy;
    Instruction instr;
    instr.op = "accel::dequantize";
    instr.args = {plan::tensorArg(root)};
    instr.results = {copy};
    instr.where = function.instructions[at].where;
    instr.movedBytes = copyTraffic();
    if (byOperators) {
      const int64_t numel = weight.copyBytes / 2;
      instr.movedBytes += static_cast<double>(unpackingBytes * numel);
      // The shifted and the narrow integers live side by side, before the copy.
      instr.workspaceBytes = std::max<int64_t>(
          0, rounded(shiftedBytes * numel) + rounded(narrowBytes * numel) -
                 rounded(weight.copyBytes));
    }
    // What read the parameter itself reads the copy.
    for (Instruction &other : function.instructions)
      for (Arg &arg : other.args)
        if (arg.kind == Arg::Kind::Tensor && arg.slot == root)
          arg.slot = copy;
    graph.insert(at, instr, graph.forward[at], /*isView=*/false);
  }

  SegmentGraph &graph;
  plan::Function &function;
  int root;
  const plan::QuantizedWeight &weight;
  bool byOperators;
};

} // namespace

void dequantize(SegmentGraph &graph, int parameter,
                plan::QuantizedMatmul product,
                const plan::QuantizedWeight &weight, bool byOperators) {
  Dequantizer(graph, parameter, weight, byOperators).run(product);
}

} // namespace accel
