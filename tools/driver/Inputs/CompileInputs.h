//===- CompileInputs.h - Jobs under torch.compile ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_COMPILEINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_COMPILEINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Of a job that torch.compile compiles: the whole model (true), or each layer
/// by itself (dynamo_use_regional_compilation); with who asks for it.
std::optional<Setting<bool>> compiledWhole(const PlanInputs &inputs);

/// Who asks for CUDA graphs of what is compiled.
std::optional<Setting<bool>> replaysGraphs(const PlanInputs &inputs);

/// Refuses what is compiled and not counted.
void checkCompiled(const PlanInputs &inputs, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_COMPILEINPUTS_H
