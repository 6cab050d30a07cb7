//===- ParameterForm.h - What a module's parameter is -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_PARAMETERFORM_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_PARAMETERFORM_H

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/Framework.h"
#include "passes/Quantize/MarkQuantized.h"
#include "passes/StepModel/StepModel.h"

namespace accel {

/// One rank's part of it, where partition-sharding made functions of those.
mlir::RankedTensorType ownType(sharding::ParamOp op);

/// Of experts of which the ranks of ep have different ones.
bool isOfSharedExperts(sharding::ParamOp op);

/// Fills in what each rank holds of a parameter that is stored quantised under
/// `framework`, tensors rounded up to `rounding` bytes; nullopt for others.
std::optional<QuantizedParam> packQuantized(sharding::ParamOp op,
                                            FrameworkKind framework,
                                            int64_t rounding,
                                            StepParameter &parameter);

/// An argument of a function that rows are looked up in: an embedding.
bool isTable(mlir::Value argument);

/// An argument of the graph that is a buffer of the model, and no data.
bool isBuffer(mlir::BlockArgument argument);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_PARAMETERFORM_H
