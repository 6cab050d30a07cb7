//===- DdpOption.h - What a script says of torch's DDP ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_OPTIONS_DDPOPTION_H
#define ACCEL_TOOLS_DRIVER_OPTIONS_DDPOPTION_H

#include "passes/Pipeline/DdpKwargs.h"
#include "tools/options/Values.h"

namespace accel {

/// "bucket_cap_mb=50,comm_hook=bf16,gradient_as_bucket_view=true": what
/// --ddp-kwargs says, added to what it said before.
ValueKind<DdpKwargs> ddpKwargsValue();

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_OPTIONS_DDPOPTION_H
