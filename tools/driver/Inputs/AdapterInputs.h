//===- AdapterInputs.h - Which adapter a plan is for ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_ADAPTERINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_ADAPTERINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel {

/// Where the model of an adapter is: `path` itself unless it is a folder with
/// an adapter_config.json and no config.json, whose base_model_name_or_path is
/// taken then. Reports a base that is not on this machine; empty then.
std::string baseModelPath(const std::string &path, DiagnosticEngine &engine);

/// Reads the adapter that --adapter, `adapter` of the job or an
/// adapter_config.json in the model's folder (`given`, before baseModelPath)
/// asks for into `inputs`, with its trained weights where the job starts from
/// weights. False after an error.
bool readAdapterInputs(const PlanOptions &options, const std::string &given,
                       PlanInputs &inputs, DiagnosticEngine &engine);

/// Reports a DoRA that the job cannot train, or that is not counted: false
/// then.
bool checkMagnitude(const PlanInputs &inputs, const PlanOptions &options,
                    DiagnosticEngine &engine);

/// The adapter's weights are those of `module`, in name and shape; a plan that
/// starts from them loads them.
bool checkAdapterWeights(mlir::ModuleOp module, const PlanInputs &inputs,
                         DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_ADAPTERINPUTS_H
