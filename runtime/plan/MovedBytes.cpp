//===- MovedBytes.cpp - What a step moves beside its operators ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/MovedBytes.h"

#include "runtime/plan/InstructionKey.h"
#include "runtime/plan/UpdateLayout.h"

#include <set>

namespace accel::plan {

static bool isMeasured(const Plan &plan) {
  return plan.device == "cpu" && plan.stages.empty() && !plan.offload.states &&
         !plan.offload.parameters;
}

static std::string keyOf(const Plan &plan, const std::string &what,
                         const std::set<std::string> &dtypes) {
  std::string key = what;
  for (const std::string &dtype : dtypes)
    key += " " + dtype;
  return key + " " + ranksText(plan);
}

std::optional<MovedBytes>
movedByUpdate(const Plan &plan, const OptimizerRule &rule, const Unit &unit) {
  if (!isMeasured(plan) || !rule.description || !unit.trainable)
    return std::nullopt;
  return MovedBytes{
      keyOf(plan, rule.description->name, {toString(unit.storage)}),
      updateWork(rule, updateShape(plan, unit), plan.device).movedBytes};
}

std::optional<MovedBytes> movedByNorm(const Plan &plan) {
  if (!isMeasured(plan))
    return std::nullopt;
  // Each is read for the sum of squares, and read and written by the scaling.
  double bytes = 0;
  std::set<std::string> dtypes;
  for (const Unit &unit : plan.units)
    if (unit.trainable) {
      bytes +=
          3 * static_cast<double>(roleBytes(plan, unit, Role::ShardGradient));
      dtypes.insert(toString(unit.storage));
    }
  return MovedBytes{
      keyOf(plan, toString(ProgramInstructionKind::GradNorm), dtypes), bytes};
}

double gatherCopyBytes(const Plan &plan, const Unit &unit) {
  const double storage = static_cast<double>(shardNumel(plan, unit)) *
                         static_cast<double>(itemSize(unit.storage));
  const double gathered = static_cast<double>(unit.padded) *
                          static_cast<double>(itemSize(unit.gather));
  return storage + gathered / static_cast<double>(plan.shardRanks(unit));
}

std::optional<MovedBytes> movedByGather(const Plan &plan, const Unit &unit) {
  if (!isMeasured(plan))
    return std::nullopt;
  return MovedBytes{keyOf(plan, toString(ProgramInstructionKind::AllGather),
                          {toString(unit.storage), toString(unit.gather)}),
                    gatherCopyBytes(plan, unit)};
}

std::optional<MovedBytes> movedBy(const Plan &plan, const OptimizerRule &rule,
                                  const ProgramInstruction &instruction) {
  switch (instruction.kind) {
  case ProgramInstructionKind::Optimizer:
    return movedByUpdate(plan, rule, plan.units[instruction.unit]);
  case ProgramInstructionKind::GradNorm:
    return movedByNorm(plan);
  case ProgramInstructionKind::AllGather:
    return movedByGather(plan, plan.units[instruction.unit]);
  default:
    return std::nullopt;
  }
}

} // namespace accel::plan
