//===- RankNames.cpp - What messages call a rank --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/RankNames.h"

namespace accel::run {

static int64_t ranksOfEachStage = 0;

void nameStages(int64_t ranksOfStage) { ranksOfEachStage = ranksOfStage; }

std::string rankName(int rank) {
  std::string name = "rank " + std::to_string(rank);
  if (ranksOfEachStage > 0)
    name += " of stage " + std::to_string(rank / ranksOfEachStage);
  return name;
}

} // namespace accel::run
