//===- RegionsUnsharded.h - Compiled layers around hooks --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_LINT_REGIONSUNSHARDED_H
#define ACCEL_FRONTENDS_LINT_REGIONSUNSHARDED_H

#include "frontends/Accelerate/KeyTable.h"

namespace accel::lint {

/// Regional compilation of these releases makes a new module of each layer,
/// whose call goes around the hooks of FSDP2 (compile_regions of
/// accelerate/utils/other.py, accelerate PR 4022).
inline constexpr struct {
  const char *code = "regions-unsharded";
  AccelerateVersion since{1, 7}, until{1, 14};
  const char *message =
      "before accelerate 1.14, regional compilation goes around the hooks of "
      "FSDP2: layers are not gathered one by one";
  const char *hint =
      "use accelerate 1.14, or dynamo_use_regional_compilation: false";
} regionsUnsharded;

} // namespace accel::lint

#endif // ACCEL_FRONTENDS_LINT_REGIONSUNSHARDED_H
