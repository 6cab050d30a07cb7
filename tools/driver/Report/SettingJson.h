//===- SettingJson.h - A point of the search, for programs ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_SETTINGJSON_H
#define ACCEL_TOOLS_DRIVER_REPORT_SETTINGJSON_H

#include "passes/Tune/Space.h"

#include <nlohmann/json.hpp>

namespace accel {

/// Every knob of `point` by name. Of checkpointing, an entry for each way that
/// calls of one kind go: how many calls, and per call the share of autograd's
/// saved bytes that it keeps and its recomputation as a share of the forward,
/// both as in `model`, which is the configured micro-batch's.
nlohmann::ordered_json settingJson(const tune::Space &space,
                                   const StepModel &model,
                                   const tune::Point &point);

/// How the step was run that was predicted, read from the decided module: what
/// the decisions that are shown have to agree with.
nlohmann::ordered_json candidateJson(const StepModel &model,
                                     const Candidate &candidate);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_SETTINGJSON_H
