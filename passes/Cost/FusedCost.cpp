//===- FusedCost.cpp - Seconds of a compiled function ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/OpCost.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace accel {

using namespace plan;

namespace {

/// Groups the instructions of a function into kernels. Two that are fused have
/// the same number of products and attentions on the longest way to them, so
/// that kernels cannot wait for each other in a circle.
class Fusion {
public:
  explicit Fusion(const Function &function)
      : function(function), group(function.instructions.size()),
        depth(function.instructions.size()),
        lastWriter(function.slots.size(), -1) {
    std::iota(group.begin(), group.end(), 0);
    for (size_t i = 0; i < function.instructions.size(); ++i)
      add(static_cast<int>(i));
  }

  FunctionCost cost(const Target &target, const CostOptions &options);
  std::vector<int> kernels() {
    std::vector<int> result(group.size());
    for (size_t i = 0; i < group.size(); ++i)
      result[i] = find(static_cast<int>(i));
    return result;
  }

private:
  static bool isFusible(OpKind kind) {
    return kind == OpKind::Stream || kind == OpKind::Reduction;
  }
  /// What reads its result is no part of the same kernel: ranks exchange it, or
  /// it is the largest value of a whole tensor or of columns, whose elements
  /// are then read again.
  bool endsKernel(const Instruction &op) const {
    if (op.op.starts_with("sharding::"))
      return true;
    if (op.results.empty() || !op.op.starts_with("aten::amax"))
      return false;
    const bool columns =
        op.args.back().kind == Arg::Kind::Int && op.args.back().intValue == 0;
    const bool whole = function.slots[op.results.front()].shape.empty();
    return columns || whole;
  }
  int baseOf(int slot) const {
    const int base = function.slots[slot].base;
    return base < 0 ? slot : base;
  }
  int find(int i) {
    while (group[i] != i)
      i = group[i] = group[group[i]];
    return i;
  }
  template <typename Fn> void forEachRead(const Instruction &op, Fn fn) const {
    for (const Arg &arg : op.args) {
      if (arg.kind == Arg::Kind::Tensor)
        fn(arg.slot);
      if (arg.kind == Arg::Kind::Tensors)
        for (int64_t slot : arg.ints)
          if (slot >= 0) // an index that is left out
            fn(static_cast<int>(slot));
    }
  }

  void add(int i) {
    const Instruction &op = function.instructions[i];
    const OpKind kind = opKind(op);
    int before = 0;
    forEachRead(op, [&](int slot) {
      const int writer = lastWriter[baseOf(slot)];
      if (writer < 0)
        return;
      const Instruction &from = function.instructions[writer];
      const bool heavy = endsKernel(from) || (!isFusible(opKind(from)) &&
                                              opKind(from) != OpKind::View);
      before = std::max(before, depth[writer] + (heavy ? 1 : 0));
    });
    depth[i] = before;
    if (isFusible(kind))
      forEachRead(op, [&](int slot) {
        const int writer = lastWriter[baseOf(slot)];
        if (writer >= 0 && depth[writer] == depth[i] &&
            isFusible(opKind(function.instructions[writer])))
          group[find(i)] = find(writer);
      });
    if (kind == OpKind::View && !endsKernel(op))
      return;
    for (int slot : op.results)
      if (slot >= 0)
        lastWriter[baseOf(slot)] = i;
    // In place, or into a destination: the last tensor of an out= form, the
    // first of one that ends in an underscore.
    if (op.results.empty()) {
      int destination = -1;
      const bool inPlace = op.op.substr(0, op.op.find('.')).ends_with("_");
      for (const Arg &arg : op.args)
        if (arg.kind == Arg::Kind::Tensor && (!inPlace || destination < 0))
          destination = arg.slot;
      if (destination >= 0)
        lastWriter[baseOf(destination)] = i;
    }
  }

  const Function &function;
  std::vector<int> group; // union-find
  std::vector<int> depth;
  std::vector<int> lastWriter; // by slot
};

FunctionCost Fusion::cost(const Target &target, const CostOptions &options) {
  struct Kernel {
    double flops = 0, bytes = 0;
    std::vector<int> members;
    OpKind kind = OpKind::Stream;
  };
  std::map<int, Kernel> kernels;
  FunctionCost cost;
  // Who computes each storage, and whether anyone outside reads it.
  std::vector<int> maker(function.slots.size(), -1);
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction &op = function.instructions[i];
    const OpKind kind = opKind(op);
    if (kind == OpKind::View)
      continue;
    if (!isFusible(kind)) {
      cost.seconds += opSeconds(function, op, target, options);
      ++cost.launches;
    } else {
      Kernel &kernel = kernels[find(static_cast<int>(i))];
      kernel.members.push_back(static_cast<int>(i));
      kernel.flops += op.flops;
      if (kind == OpKind::Reduction)
        kernel.kind = OpKind::Reduction;
    }
    for (int slot : op.results)
      if (slot >= 0)
        maker[baseOf(slot)] = static_cast<int>(i);
  }
  std::vector<bool> kept(function.slots.size());
  for (const auto *list : {&function.outputs, &function.gradients})
    for (int slot : *list)
      kept[baseOf(slot)] = true;
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction &op = function.instructions[i];
    if (opKind(op) == OpKind::View)
      continue;
    forEachRead(op, [&](int slot) {
      const int from = maker[baseOf(slot)];
      if (from < 0 || find(from) != find(static_cast<int>(i)))
        kept[baseOf(slot)] = true;
    });
  }
  for (auto &[root, kernel] : kernels) {
    if (kernel.members.size() == 1) {
      cost.seconds += opSeconds(
          function, function.instructions[kernel.members[0]], target, options);
      ++cost.launches;
      continue;
    }
    std::vector<int> read;
    double inner = 0; // bytes that stay in registers
    double moved = 0;
    for (int member : kernel.members) {
      const Instruction &op = function.instructions[member];
      moved += op.movedBytes;
      auto bytesOf = [&](int slot) {
        const Slot &s = function.slots[slot];
        double bytes = static_cast<double>(itemSize(s.dtype));
        for (int64_t size : s.shape)
          bytes *= static_cast<double>(size);
        return bytes;
      };
      forEachRead(op, [&](int slot) {
        const int base = baseOf(slot);
        const int from = maker[base];
        const bool own = from >= 0 && find(from) == find(member);
        // Read from a register, or by an operator of the kernel before.
        if (own || std::find(read.begin(), read.end(), base) != read.end())
          inner += bytesOf(slot);
        else
          read.push_back(base);
      });
      for (int slot : op.results)
        if (slot >= 0 && !kept[baseOf(slot)])
          inner += bytesOf(slot);
    }
    const double bytes = std::max(0.0, moved - inner);
    cost.seconds += std::max(target.launchSeconds +
                                 kernel.flops / target.peakFlops(DType::F32),
                             memorySeconds(target, bytes, kernel.kind));
    ++cost.launches;
  }
  return cost;
}

} // namespace

FunctionCost fusedCost(const Function &function, const Target &target,
                       const CostOptions &options) {
  return Fusion(function).cost(target, options);
}

std::vector<int> fusedKernels(const Function &function) {
  return Fusion(function).kernels();
}

} // namespace accel
