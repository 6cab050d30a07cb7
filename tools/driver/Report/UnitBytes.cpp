//===- UnitBytes.cpp - What a rank holds of a unit ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/UnitBytes.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace accel {

UnitBytes unitBytes(const plan::Plan &plan, const plan::Unit &unit) {
  return {plan::shardNumel(plan, unit) * plan::itemSize(unit.storage),
          plan::readsShard(plan, unit)
              ? 0
              : plan::roleBytes(plan, unit, plan::Role::Gathered),
          plan::toString(unit.storage)};
}

namespace {

/// Parameters that are tensors of their own.
class Tensors {
public:
  Tensors(const plan::Plan &plan, const StepModel &model,
          const Candidate &candidate)
      : plan(plan), zero(candidate.executor == FrameworkKind::Deepspeed),
        sharded(!zero || candidate.zeroStage == 3),
        persistent(zero ? candidate.zero.persistenceThreshold : 0) {
    for (const StepParameter &parameter : model.parameters)
      byName[parameter.fqn] = &parameter;
  }

  UnitBytes of(const plan::Unit &unit) const {
    const bool packed =
        std::any_of(unit.parameters.begin(), unit.parameters.end(), [&](int p) {
          const StepParameter *parameter = find(p);
          return parameter && parameter->quantized();
        });
    if (!packed && !zero)
      return unitBytes(plan, unit);
    const int64_t ranks = sharded ? plan.shardRanks(unit) : 1;
    UnitBytes bytes;
    bytes.dtypes = plan::toString(unit.storage);
    for (int p : unit.parameters) {
      const StepParameter *parameter = find(p);
      const bool quantized = parameter && parameter->quantized();
      const int64_t numel = quantized
                                ? parameter->storedNumel()
                                : plan::ownNumel(plan, plan.parameters[p]);
      const plan::DType dtype = quantized ? parameter->dtype : unit.storage;
      const int64_t item = plan::itemSize(dtype);
      bytes.kept += (numel + ranks - 1) / ranks * item;
      if (quantized)
        bytes.kept += parameter->replicatedBytes;
      if (dtype != unit.storage)
        bytes.dtypes = std::string(plan::toString(dtype)) + " and " +
                       plan::toString(unit.storage);
      if (ranks == 1)
        continue;
      // Stage 3 keeps small parameters whole beside the partitions of all.
      if (numel <= persistent)
        bytes.kept += numel * item;
      else
        bytes.gathered +=
            numel * (quantized ? item : plan::itemSize(unit.gather));
    }
    return bytes;
  }

private:
  const StepParameter *find(int parameter) const {
    const auto at = byName.find(plan.parameters[parameter].fqn);
    return at == byName.end() ? nullptr : at->second;
  }

  const plan::Plan &plan;
  bool zero, sharded;
  int64_t persistent;
  std::unordered_map<std::string_view, const StepParameter *> byName;
};

} // namespace

std::vector<UnitBytes> unitBytes(const plan::Plan &plan) {
  std::vector<UnitBytes> all;
  for (const plan::Unit &unit : plan.units)
    all.push_back(unitBytes(plan, unit));
  return all;
}

std::vector<UnitBytes> unitBytes(const plan::Plan &plan,
                                 const PlanReport &report) {
  if (report.executor == FrameworkKind::AccelRun || !report.advice ||
      !report.advice->model)
    return unitBytes(plan);
  const Tensors tensors(plan, *report.advice->model, report.advice->candidate);
  std::vector<UnitBytes> all;
  for (const plan::Unit &unit : plan.units)
    all.push_back(tensors.of(unit));
  return all;
}

} // namespace accel
