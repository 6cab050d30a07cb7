//===- RankNames.h - What messages call a rank ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_RANKNAMES_H
#define ACCEL_RUNTIME_COLLECTIVES_RANKNAMES_H

#include <cstdint>
#include <string>

namespace accel::run {

/// The job is a pipeline's: each stage has so many ranks, one stage after the
/// other. Called once, before there are threads.
void nameStages(int64_t ranksOfStage);

/// "rank 3", or "rank 3 of stage 1".
std::string rankName(int rank);

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_RANKNAMES_H
