//===- QuantizedRefusals.h - Who refuses a quantised base -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_QUANTIZEDREFUSALS_H
#define ACCEL_FRONTENDS_JOB_QUANTIZEDREFUSALS_H

#include "frontends/Job/QuantizationConfig.h"

namespace accel {

/// Why FSDP2 cannot train an adapter on such a base; a sentence.
std::string refusalOfFsdp2(const QuantizationConfig &config);

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_QUANTIZEDREFUSALS_H
