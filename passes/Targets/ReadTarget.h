//===- ReadTarget.h - From a YAML document to a target ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TARGETS_READTARGET_H
#define ACCEL_PASSES_TARGETS_READTARGET_H

#include "frontends/Yaml/Yaml.h"
#include "passes/Targets/Target.h"

namespace accel {

/// Reports every problem with its place; nothing after an error.
std::optional<Target> readTarget(const yaml::Document &document,
                                 DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_PASSES_TARGETS_READTARGET_H
