//===- RenderValidation.h - Predicted beside measured -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_RENDERVALIDATION_H
#define ACCEL_TOOLS_DRIVER_REPORT_RENDERVALIDATION_H

#include "passes/Validate/Validate.h"

#include <string>

namespace accel {

/// Errors by family and each run, as tables, and why a run is not modelled.
std::string renderValidation(const validate::ValidationResult &result);

/// The same and what was reported on the way, for programs.
std::string renderValidationJson(const validate::ValidationResult &result,
                                 const DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_RENDERVALIDATION_H
