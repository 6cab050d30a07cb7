//===- InsideEvents.h - What operators need while they run ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_INSIDEEVENTS_H
#define ACCEL_PASSES_STEPMODEL_INSIDEEVENTS_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// Adds what `instr` of the graph allocates and frees while it runs, under
/// numbers from `number` on, and returns the most bytes of it. Of calls of a
/// library with one size of workspace the first alone is among `events`.
int64_t emitInsideOf(const SegmentGraph &graph, const plan::Instruction &instr,
                     int number, std::vector<StorageEvent> &events);

/// Adds that `instr` of `function` calls a library that multiplies, if it does.
void emitLibraryOf(const SegmentGraph &graph, const plan::Function &function,
                   const plan::Instruction &instr,
                   std::vector<StorageEvent> &events);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_INSIDEEVENTS_H
