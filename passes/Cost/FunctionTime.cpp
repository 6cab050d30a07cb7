//===- FunctionTime.cpp - How long a function takes -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/FunctionTime.h"

#include "passes/Cost/ExchangeCost.h"
#include "passes/Cost/OpCost.h"

#include <algorithm>
#include <map>

namespace accel {

FunctionTime functionTime(const plan::Function &function,
                          const plan::Mesh &mesh, int64_t ranksPerNode,
                          const Target &target) {
  FunctionTime time;
  double wire = 0;               // when it is free
  std::map<int, double> flights; // end of what is under way, by its result
  auto now = [&] { return time.computeSeconds + time.exchangeSeconds; };
  for (const plan::Instruction &instruction : function.instructions) {
    if (opKind(instruction) != OpKind::View)
      time.computeSeconds += opSeconds(function, instruction, target);
    if (!plan::isExchange(instruction))
      continue;
    const std::optional<plan::Exchange> exchange =
        plan::exchangeOf(instruction);
    if (!exchange)
      continue;
    if (exchange->kind == plan::ExchangeKind::Await) {
      if (auto flight = flights.find(exchange->result); flight != flights.end())
        time.exchangeSeconds += std::max(0.0, flight->second - now());
      continue;
    }
    if (!exchange->communicates())
      continue;
    const double seconds =
        exchangeSeconds(function, *exchange, mesh, ranksPerNode, target);
    if (!exchange->started) {
      time.exchangeSeconds += std::max(0.0, wire - now()) + seconds;
      wire = std::max(wire, now());
      continue;
    }
    wire = std::max(wire, now()) + seconds;
    flights[exchange->result] = wire;
    // The part that cannot be hidden is taken from the computation.
    time.exchangeSeconds += seconds * (1 - target.overlap);
  }
  return time;
}

} // namespace accel
