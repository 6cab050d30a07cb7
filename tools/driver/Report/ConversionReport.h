//===- ConversionReport.h - What a conversion changed -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_CONVERSIONREPORT_H
#define ACCEL_TOOLS_DRIVER_REPORT_CONVERSIONREPORT_H

#include "frontends/Convert/Convert.h"

#include <optional>
#include <string>

namespace accel {

/// Each edit of `file` with its reason, and what the new job does otherwise; ""
/// where nothing was changed.
std::string renderConversion(const convert::Conversion &conversion,
                             const std::string &file);

/// The object of `--format json`, with what `engine` has found. `output` is the
/// file that was written, or "".
std::string conversionJson(const std::optional<convert::Conversion> &conversion,
                           const std::string &output,
                           const DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_CONVERSIONREPORT_H
