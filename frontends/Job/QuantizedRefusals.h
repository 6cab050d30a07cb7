//===- QuantizedRefusals.h - Who refuses a quantised base -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_QUANTIZEDREFUSALS_H
#define ACCEL_FRONTENDS_JOB_QUANTIZEDREFUSALS_H

#include "frontends/Job/QuantizationConfig.h"

namespace accel {

/// The code of a refusal among diagnostics.
inline constexpr const char *quantizedBaseCode = "quantized-base";

struct QuantizedRefusal {
  std::string message, hint; // sentences
  bool isOurs = false;       // it works, and is not modelled
};

/// Why FSDP2 cannot train an adapter on such a base; nothing where it can,
/// because its preparation leaves the packed weights out of the shards: from
/// Accelerate 1.14 on fsdp2_prepare_model (accelerate/utils/fsdp_utils.py)
/// gives those that bitsandbytes packs in bytes to an argument that
/// fully_shard has since torch 2.7. `torch` is empty where its release is not
/// known, which is then new enough.
std::optional<QuantizedRefusal> refusalOfFsdp2(const QuantizationConfig &config,
                                               const std::string &accelerate,
                                               const std::string &torch);

/// Says of a base that FSDP2 takes that each rank keeps it whole.
void noteWholeUnderFsdp2(const QuantizationConfig &config,
                         const std::string &file, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_QUANTIZEDREFUSALS_H
