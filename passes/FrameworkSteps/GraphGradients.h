//===- GraphGradients.h - Gradients that CUDA graphs write ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_GRAPHGRADIENTS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_GRAPHGRADIENTS_H

#include "passes/FrameworkSteps/StepEvaluator.h"

namespace accel {

/// Why torch stops where a micro-batch adds to gradients that CUDA graphs
/// wrote, or "". Part of what verifyCandidate checks.
std::string overwrittenGradients(const Candidate &candidate);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_GRAPHGRADIENTS_H
