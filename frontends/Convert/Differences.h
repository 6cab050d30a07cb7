//===- Differences.h - What executors do otherwise --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CONVERT_DIFFERENCES_H
#define ACCEL_FRONTENDS_CONVERT_DIFFERENCES_H

#include "frontends/Accelerate/AccelerateConfig.h"
#include "frontends/Convert/Convert.h"

namespace accel::convert {

/// What each executor does about one subject, with `{mp}` for the low
/// precision. Null: the subject does not arise there.
struct Topic {
  const char *id, *area;
  const char *fsdp1, *fsdp2, *deepspeed, *ddp;
};

/// The topic; it must exist.
const Topic &findTopic(std::string_view id);

/// What changes for this job besides its keys.
std::vector<Difference> differencesOf(const AccelerateConfig &before,
                                      Executor from, Executor to);

} // namespace accel::convert

#endif // ACCEL_FRONTENDS_CONVERT_DIFFERENCES_H
