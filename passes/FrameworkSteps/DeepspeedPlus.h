//===- DeepspeedPlus.h - Second copies and quantised wires ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// ZeRO++ as DeepSpeed has it (zero/partition_parameters.py, zero/stage3.py,
// runtime/comm/coalesced_collectives.py): what each unit holds, sends and takes
// more or less. With hpZ the first forward of a step gathers over all ranks and
// leaves each rank a part of a second copy, from which the group gathers until
// the update. With qwZ a gather carries 8-bit values and a scale in fp32 for
// each group of them. With qgZ matrices of gradients cross in 4 bits, within
// the machines and then between them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_DEEPSPEEDPLUS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_DEEPSPEEDPLUS_H

#include "passes/Cost/CollectiveCost.h"
#include "passes/FrameworkSteps/StepLayout.h"

#include <algorithm>

namespace accel {

class DeepspeedPlus {
public:
  DeepspeedPlus() = default;
  DeepspeedPlus(const StepLayout &layout, const Candidate &candidate)
      : layout(&layout), zero(&candidate.zero),
        active(candidate.zeroStage == 3 &&
               (candidate.zero.secondaryRanks > 1 ||
                candidate.zero.quantizedWeights ||
                candidate.zero.quantizedGradients)) {
    if (!active)
      return;
    units.assign(layout.units.size(), Unit());
    near = candidate.mesh.group(candidate.mesh.set({plan::secondaryAxis}),
                                candidate.ranksPerNode);
    item = plan::itemSize(candidate.dtypes.compute);
  }

  /// A parameter that is released after use: `held` bytes for each element.
  void addGathered(int u, const StepParameter &parameter, int64_t held) {
    if (!active)
      return;
    const int64_t numel = parameter.storedNumel();
    Unit &unit = units[u];
    // The largest group of CUDAQuantizer has 8000 elements.
    unit.wire += layout->round(numel + (numel + 7999) / 8000 * 4);
    if (!hasSecondary())
      return;
    const int64_t part =
        layout->round((numel + near.ranks - 1) / near.ranks * held);
    if (parameter.trainable)
      unit.secondary += part;
    else
      frozen += part;
  }
  /// Vectors, and what two all-to-alls cannot divide, are reduced as they are.
  void addGradient(int u, const StepParameter &parameter) {
    const int64_t numel = parameter.numel();
    if (!active || !zero->quantizedGradients || parameter.shape.size() < 2 ||
        numel % (2 * layout->shards.ranks) != 0)
      return;
    units[u].quantized += numel;
    units[u].largest = std::max(units[u].largest, numel);
  }

  bool hasSecondary() const { return active && zero->secondaryRanks > 1; }
  bool quantizesWeights() const { return active && zero->quantizedWeights; }
  bool changesGather() const { return hasSecondary() || quantizesWeights(); }

  /// Second copies of this rank: of a unit's trained parameters, and of all
  /// frozen ones, which never become stale.
  int64_t secondary(int u) const { return active ? units[u].secondary : 0; }
  int64_t frozenSecondary() const { return frozen; }

  int64_t wireBytes(int u) const { return units[u].wire; }
  Picoseconds gatherTime(int, bool overAll, double bytes) const {
    return toPicoseconds(collectiveSeconds(
        layout->target, Collective::AllGather,
        hasSecondary() && !overAll ? near : layout->shards, bytes));
  }

  /// Bytes of a unit's gradients, in the dtype of computation, that cross in 4
  /// bits.
  double quantizedGradients(int u) const {
    return active ? static_cast<double>(units[u].quantized * item) : 0;
  }
  /// Of one matrix: what is sent and what arrives.
  int64_t quantizedBuffers(int u) const {
    return 2 * layout->round(units[u].largest / 2);
  }
  /// An all-to-all moves what a reduce-scatter of as many bytes does: within
  /// machines, then between them what is left.
  Picoseconds exchangeTime(int u) const {
    const plan::AxisGroup &all = layout->shards;
    const double bytes = static_cast<double>(units[u].quantized) / 2;
    const double local = static_cast<double>(all.inNode);
    return toPicoseconds(
        collectiveSeconds(layout->target, Collective::ReduceScatter,
                          {all.inNode, all.inNode}, bytes) +
        collectiveSeconds(layout->target, Collective::ReduceScatter,
                          {all.ranks / all.inNode, 1}, bytes / local));
  }

private:
  struct Unit {
    int64_t wire = 0, secondary = 0;    // bytes
    int64_t quantized = 0, largest = 0; // elements
  };
  const StepLayout *layout = nullptr;
  const ZeroBuffers *zero = nullptr;
  bool active = false;
  plan::AxisGroup near;
  int64_t item = 2, frozen = 0;
  std::vector<Unit> units;
};

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_DEEPSPEEDPLUS_H
