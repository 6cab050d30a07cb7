//===- ModulePath.h - Names of modules in a model ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_MODULEPATH_H
#define ACCEL_RUNTIME_PLAN_MODULEPATH_H

#include <string>
#include <string_view>

namespace accel::plan {

/// `path` with `*` for each part that is a number, so that equal layers have
/// one name: "model.layers.31.mlp" is "model.layers.*.mlp", and the
/// unit "model.layers.31/frozen" is "model.layers.*/frozen".
std::string withoutLayerNumbers(std::string_view path);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_MODULEPATH_H
