//===- TimeCollectives.h - Collectives and messages alone -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_TIMECOLLECTIVES_H
#define ACCEL_TOOLS_ACCEL_RUN_TIMECOLLECTIVES_H

#include "runtime/collectives/Groups.h"
#include "runtime/execute/Device.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <set>
#include <string>

namespace accel::run {

/// plan::collectiveKey of what gathers, reduces or all-reduces a unit, else "".
std::string collectiveOf(const plan::Plan &plan,
                         const plan::ProgramInstruction &instruction);

/// A distinct collective, or a message between two stages.
struct Timed {
  const plan::ProgramInstruction *first = nullptr; // null: a message
  std::string key;                                 // in a target's file
  int64_t bytes = 0;
  std::set<int> stages; // whose ranks run it
  double seconds = -1;  // as this rank has timed it
};
using Collectives = std::map<std::string, Timed>;

/// Those of all stages.
Collectives collectivesOf(const plan::Plan &plan);

/// Times each that this rank's stage runs, with nothing beside it. All ranks
/// must call it.
void timeCollectives(const plan::Plan &plan, Device &device, Groups &groups,
                     Collectives &collectives);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_TIMECOLLECTIVES_H
