//===- RenderFp8.h - Where fp8 pays -----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_RENDERFP8_H
#define ACCEL_TOOLS_DRIVER_REPORT_RENDERFP8_H

#include "passes/StepModel/StepModel.h"

#include <nlohmann/json.hpp>

#include <string>

namespace accel {

/// A line on what the linear layers take in fp8 with their casts, and which of
/// them take longer than in 16 bits; empty without such layers. `compiled`:
/// torch.compile fuses the casts.
std::string renderFp8(const StepModel &model, bool compiled);

/// By layer: rows, sizes, seconds of the three matmuls in 16 and in 8 bits.
nlohmann::ordered_json fp8Json(const StepModel &model);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_RENDERFP8_H
