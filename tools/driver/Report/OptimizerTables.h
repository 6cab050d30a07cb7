//===- OptimizerTables.h - What optimizers hold -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_OPTIMIZERTABLES_H
#define ACCEL_TOOLS_DRIVER_REPORT_OPTIMIZERTABLES_H

#include "runtime/plan/Optimizers.h"

#include <nlohmann/json.hpp>
#include <string>

namespace accel {

/// Hyperparameters, states and transformers' names of one.
std::string renderOptimizer(const plan::OptimizerDescription &description);
nlohmann::ordered_json
optimizerJson(const plan::OptimizerDescription &description);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_OPTIMIZERTABLES_H
