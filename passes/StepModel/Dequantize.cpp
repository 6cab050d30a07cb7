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
              const plan::QuantizedWeight &weight, const MatmulForm &form)
      : graph(graph), function(graph.function),
        root(function.slots[parameter].base), weight(weight), form(form) {}

  void run(plan::QuantizedMatmul product) {
    dropCasts();
    if (product == plan::QuantizedMatmul::SavesCopy)
      return saveCopy();
    const bool holds = product == plan::QuantizedMatmul::MultipliesIntegers;
    if (holds || product == plan::QuantizedMatmul::DequantizesSavesInput)
      saveInputs(holds);
    if (holds)
      return multiplyIntegers();
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

  /// What the matmul multiplies with the weight: the bias, if there is one, is
  /// before it. -1: nothing.
  int inputOf(const Instruction &instr) const {
    int input = -1;
    for (const Arg &arg : instr.args)
      if (arg.kind == Arg::Kind::Tensor && arg.slot >= 0 &&
          function.slots[arg.slot].base != root)
        input = arg.slot;
    return input;
  }

  /// LLM.int8() (Dettmers et al., arXiv 2208.07339) as MatMul8bitLt of
  /// bitsandbytes/autograd/_functions.py computes it, with the kernels of
  /// backends/cuda/ops.py.
  void multiplyIntegers() {
    graph.heldByNodes.insert(root); // MatmulLtState.CB
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      if (!isProduct(function.instructions[i]))
        continue;
      // A copy: what is put before it moves it.
      const Instruction product = function.instructions[i];
      at = i;
      where = product.where;
      std::vector<int> held =
          graph.forward[i]
              ? sumIntegers(inputOf(product), product.results.front())
              : std::vector<int>{widen(product)};
      // Locals of the Python function, which go when the result is there.
      for (int slot : held)
        function.instructions[at].args.push_back(plan::tensorArg(slot));
      i = at;
    }
  }

  /// int8_vectorwise_quant takes rows in fp16, and looks for columns of
  /// outliers where there is a threshold: how many there are, and what is kept
  /// of them, depends on values and is not counted. The integers' sums (int32)
  /// become fp16 (int8_mm_dequant), and then the result's dtype, which is the
  /// matmul itself here.
  std::vector<int> sumIntegers(int input, int result) {
    if (input < 0)
      return {};
    const std::vector<int64_t> rows = function.slots[input].shape,
                               shape = function.slots[result].shape;
    const std::vector<int64_t> each(rows.begin(), rows.end() - 1);
    const plan::DType wide = function.slots[result].dtype;
    int half = input;
    if (function.slots[input].dtype != plan::DType::F16)
      half = make("aten::_to_copy", {input}, rows, plan::DType::F16);
    const int scales = newSlot(each, plan::DType::F32);
    const int bytes =
        make("accel::quantize_rows", {half}, rows, plan::DType::U8);
    std::vector<int> &made = function.instructions[at - 1].results;
    made.insert(made.begin(), scales);
    if (form.findsOutliers) {
      const int sizes = make("aten::abs", {half}, rows, plan::DType::F16);
      const int found = make("aten::ge", {sizes}, rows, plan::DType::I1);
      // Both, and the rows in fp16, are there until the quantisation ends.
      make("aten::any", {found, half}, {}, plan::DType::I1);
    }
    const int sums =
        make("accel::sum_integers", {bytes}, shape, plan::DType::I32);
    if (wide == plan::DType::F16)
      return {bytes, scales, sums};
    const int scaled =
        make("accel::scale_sums", {sums, scales}, shape, plan::DType::F16);
    return {bytes, sums, scaled};
  }

  /// state.CB.to(dtype, copy=True).mul_(state.SCB.unsqueeze(1).mul(1 / 127)).
  int widen(const Instruction &product) {
    const plan::Slot of = function.slots[root];
    const int input = inputOf(product);
    const int copy = make("accel::dequantize", {root}, of.shape,
                          input < 0 ? of.dtype : function.slots[input].dtype);
    function.instructions[at - 1].movedBytes =
        static_cast<double>(weight.packedBytes + weight.copyBytes);
    const int scales =
        make("aten::mul", {}, {of.shape.front(), 1}, plan::DType::F32);
    Instruction times;
    times.op = "aten::mul_";
    times.where = where;
    times.args = {plan::tensorArg(copy), plan::tensorArg(scales)};
    times.movedBytes = 2.0 * static_cast<double>(weight.copyBytes);
    times.results = {newSlot(of.shape, function.slots[copy].dtype)};
    function.slots[times.results.front()].base = copy;
    graph.insert(at, times, graph.forward[at], /*isView=*/false);
    ++at;
    return copy;
  }

  int newSlot(std::vector<int64_t> shape, plan::DType dtype) {
    const int slot = static_cast<int>(function.slots.size());
    function.slots.push_back({dtype, std::move(shape), slot});
    return slot;
  }
  /// An operator before the matmul, that reads `inputs` and makes one tensor.
  int make(const char *op, const std::vector<int> &inputs,
           std::vector<int64_t> shape, plan::DType dtype) {
    const int slot = newSlot(std::move(shape), dtype);
    Instruction instr;
    instr.op = op;
    instr.where = where;
    instr.movedBytes = plan::movedBytesOf(function.slots[slot]);
    for (int input : inputs) {
      instr.args.push_back(plan::tensorArg(input));
      instr.movedBytes += plan::movedBytesOf(function.slots[input]);
    }
    instr.results = {slot};
    graph.insert(at, instr, graph.forward[at], /*isView=*/false);
    ++at;
    return slot;
  }

  /// The backward of each matmul reads the forward's input too.
  void saveInputs(bool holds) {
    std::vector<int> inputs; // of the forward's matmuls, in order
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const Instruction &instr = function.instructions[i];
      if (!graph.forward[i] || !isProduct(instr))
        continue;
      const int input = inputOf(instr);
      if (input < 0)
        continue;
      const int storage = function.slots[input].base;
      const bool outside = std::any_of(
          function.inputs.begin(), function.inputs.end(),
          [&](int slot) { return function.slots[slot].base == storage; });
      if (holds && !outside)
        graph.heldByNodes.insert(storage);
      else
        inputs.push_back(input);
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
    if (form.byOperators) {
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
  const MatmulForm form;
  size_t at = 0;     // of the matmul that is written
  std::string where; // its module
};

} // namespace

void dequantize(SegmentGraph &graph, int parameter,
                plan::QuantizedMatmul product,
                const plan::QuantizedWeight &weight, const MatmulForm &form) {
  Dequantizer(graph, parameter, weight, form).run(product);
}

} // namespace accel
