//===- ExchangeCost.cpp - Seconds of an exchange in a function ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/ExchangeCost.h"

#include "passes/Cost/CollectiveCost.h"

#include <algorithm>
#include <optional>

namespace accel {

namespace {

Collective collectiveOf(plan::ExchangeKind kind) {
  switch (kind) {
  case plan::ExchangeKind::AllGather:
    return Collective::AllGather;
  case plan::ExchangeKind::ReduceScatter:
    return Collective::ReduceScatter;
  case plan::ExchangeKind::AllToAll:
  case plan::ExchangeKind::Dispatch:
  case plan::ExchangeKind::Combine:
    return Collective::AllToAll;
  default:
    return Collective::AllReduce;
  }
}

double bytesOf(const plan::Slot &slot) {
  double bytes = static_cast<double>(plan::itemSize(slot.dtype));
  for (int64_t size : slot.shape)
    bytes *= static_cast<double>(size);
  return bytes;
}

} // namespace

double exchangeSeconds(const plan::Function &function,
                       const plan::Exchange &exchange, const plan::Mesh &mesh,
                       int64_t ranksPerNode, const Target &target) {
  if (!exchange.communicates())
    return 0;
  const plan::AxisGroup group =
      mesh.group(mesh.set(exchange.axes), ranksPerNode);
  if (exchange.kind == plan::ExchangeKind::Permute)
    return collectiveSeconds(target, Collective::Permute, group,
                             bytesOf(function.slots[exchange.value]));
  // The buffer of all ranks; of rows that go to experts the side that has no
  // place for more than an even share.
  const int buffer = exchange.kind == plan::ExchangeKind::ReduceScatter ||
                             exchange.kind == plan::ExchangeKind::Dispatch
                         ? exchange.value
                         : exchange.result;
  return collectiveSeconds(target, collectiveOf(exchange.kind), group,
                           bytesOf(function.slots[buffer]));
}

double exchangeSeconds(const plan::Function &function,
                       const plan::Instruction &instruction,
                       const plan::Mesh &mesh, int64_t ranksPerNode,
                       const Target &target) {
  if (!plan::isExchange(instruction))
    return 0;
  const std::optional<plan::Exchange> exchange = plan::exchangeOf(instruction);
  return exchange
             ? exchangeSeconds(function, *exchange, mesh, ranksPerNode, target)
             : 0;
}

std::string exchangesOver(const plan::Mesh &mesh) {
  std::string axes;
  for (const plan::Axis &axis : mesh.axes)
    if (axis.size > 1 && axis.name != plan::pipelineAxis &&
        (plan::sharesSamples(axis.name) || axis.name == plan::expertAxis))
      axes += (axes.empty() ? "" : " and ") + axis.name;
  return "exchanges over " + axes;
}

} // namespace accel
