//===- MegatronMixture.h - Where a function has its experts -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_MEGATRONMIXTURE_H
#define ACCEL_PASSES_STEPMODEL_MEGATRONMIXTURE_H

#include "passes/StepModel/SegmentGraph.h"

#include <set>
#include <string>

namespace accel {

/// A half of the function: the instructions of the mixture, what they read of
/// others, and what others read of them.
struct MixtureHalf {
  std::set<int> inside;
  std::vector<int> reads, gives; // slots
};

/// The router and the routed experts are those of `module`.
bool isOfMixture(const plan::Instruction &instruction,
                 const std::string &module);

/// Exchanges over tp around the mixture belong to it: it works on a rank's
/// own tokens.
MixtureHalf findMixture(const SegmentGraph &graph, const std::string &module,
                        bool isForward);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_MEGATRONMIXTURE_H
