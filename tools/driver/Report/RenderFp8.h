//===- RenderFp8.h - Where fp8 pays -----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_RENDERFP8_H
#define ACCEL_TOOLS_DRIVER_REPORT_RENDERFP8_H

#include "passes/FrameworkSteps/StepEvaluator.h"

#include <nlohmann/json.hpp>

#include <string>

namespace accel {

/// A line on what the linear layers take in a step in fp8 with their casts, and
/// which of them take longer than in 16 bits; empty without such layers.
std::string renderFp8(const StepModel &model, const Candidate &candidate);

/// By kind of layer: how many a micro-batch calls, rows, sizes, and the seconds
/// of all their matmuls in a step, in 16 and in 8 bits.
nlohmann::ordered_json fp8Json(const StepModel &model,
                               const Candidate &candidate);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_RENDERFP8_H
