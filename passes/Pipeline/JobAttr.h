//===- JobAttr.h - What only the runtime reads, as an attribute -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINE_JOBATTR_H
#define ACCEL_PASSES_PIPELINE_JOBATTR_H

#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace accel {

/// `job` as the `training` attribute of `sharding.job`, so that a dumped phase
/// can be compiled further without the YAML. Its fields are called and grouped
/// as in plan.json (runtime/plan/Fields/Job.h); those at their defaults are
/// left out.
mlir::DictionaryAttr jobToAttr(mlir::MLIRContext *context,
                               const plan::Job &job);

/// The job of the attribute. Unknown or mistyped fields make an error sentence.
std::string jobFromAttr(mlir::DictionaryAttr attr, plan::Job &job);

} // namespace accel

#endif // ACCEL_PASSES_PIPELINE_JOBATTR_H
