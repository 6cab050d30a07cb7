//===- SearchOrders.h - The fastest order, for tiny cases -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The oracle of Orders.cpp: every order of every rank, by branch and bound.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINESCHEDULES_SEARCHORDERS_H
#define ACCEL_PASSES_PIPELINESCHEDULES_SEARCHORDERS_H

#include "passes/PipelineSchedules/Simulate.h"

namespace accel::pipeline {

struct OrderSearch {
  bool splitBackward = false; // in two actions
  std::vector<int> frames;    // at most, by stage; empty: any number
  int64_t maxNodes = 20'000'000;
};

struct BestOrder {
  double makespan = 0;
  Schedule schedule;
  bool proven = false; // all orders were looked at
  int64_t nodes = 0;
};

/// The stages of `problem` where they are, in the order that ends first. Every
/// action takes more than 0 seconds.
BestOrder bestOrder(const Problem &problem, const Costs &costs,
                    const OrderSearch &search = {});

} // namespace accel::pipeline

#endif // ACCEL_PASSES_PIPELINESCHEDULES_SEARCHORDERS_H
