//===- TorchNames.h - Names in torch's pickles ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_TORCHNAMES_H
#define ACCEL_FRONTENDS_CHECKPOINT_TORCHNAMES_H

#include "frontends/Checkpoint/Pickle.h"
#include "frontends/Diagnostics/Diagnostics.h"

namespace accel::checkpoint {

/// "torch float32" and the like.
bool isTorchDtype(std::string_view global);
/// "torch FloatStorage" as "float32", "" for what is no storage.
std::string_view dtypeOfStorage(std::string_view global);
/// The reverse: "FloatStorage", "" where torch has no such class.
std::string_view storageOfDtype(std::string_view dtype);
/// Reports why a pickle is not read; false.
bool reportPickle(const Pickle::Problem &problem, const std::string &path,
                  DiagnosticEngine &diagnostics);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_TORCHNAMES_H
