//===- QuantizationOption.h - --quantize ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_OPTIONS_QUANTIZATIONOPTION_H
#define ACCEL_TOOLS_DRIVER_OPTIONS_QUANTIZATIONOPTION_H

#include "frontends/Job/QuantizationConfig.h"
#include "tools/options/Values.h"

namespace accel {

/// "nf4,double_quant,storage=bf16", as parseQuantization reads it.
ValueKind<QuantizationConfig> quantizationValue();

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_OPTIONS_QUANTIZATIONOPTION_H
