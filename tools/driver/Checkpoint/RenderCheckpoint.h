//===- RenderCheckpoint.h - What inspect prints -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_CHECKPOINT_RENDERCHECKPOINT_H
#define ACCEL_TOOLS_DRIVER_CHECKPOINT_RENDERCHECKPOINT_H

#include "frontends/Checkpoint/Merge.h"

namespace accel {

/// What the folder is, its parts and, with `tensors`, each tensor.
std::string renderCheckpoint(const checkpoint::Checkpoint &read, bool tensors);

/// One object with every tensor, and the diagnostics.
std::string checkpointJson(const std::optional<checkpoint::Checkpoint> &read,
                           const DiagnosticEngine &engine);

/// What was merged into `output`.
std::string renderMerge(const checkpoint::Merged &merged,
                        const std::string &output);
/// {merged: {folder, tensors, bytes, left_out, parts [{file, bytes}]} or null,
/// diagnostics}.
std::string mergeJson(const std::optional<checkpoint::Merged> &merged,
                      const std::string &output,
                      const DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_CHECKPOINT_RENDERCHECKPOINT_H
