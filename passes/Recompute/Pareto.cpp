//===- Pareto.cpp - Ways to checkpoint a segment --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/Pareto.h"

#include "passes/Recompute/JointJson.h"
#include "runtime/plan/Sha256.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include <coin/CbcModel.hpp>
#include <coin/OsiClpSolverInterface.hpp>

namespace accel {

namespace {

/// Nodes of branch and bound: a count, so that the answer does not depend on
/// the machine. Shares of 126 layers take a few.
constexpr int shareNodes = 2000;

bool beats(const ParetoPoint &a, const ParetoPoint &b) {
  const SavedSetSolution &x = a.solution, &y = b.solution;
  return x.bytes.saved <= y.bytes.saved &&
         x.recomputeSeconds <= y.recomputeSeconds &&
         x.bytes.backwardHeldPeak <= y.bytes.backwardHeldPeak;
}

std::vector<ParetoPoint> solveFront(const JointGraph &graph,
                                    const Target &target, int points) {
  SavedSetProblem problem(graph, instructionTimes(graph, target));
  std::vector<ParetoPoint> all;
  auto add = [&](const char *name, SavedSetSolution solution) {
    ParetoPoint &point = all.emplace_back();
    point.capBytes = problem.capBytes;
    point.variant = measureVariant(graph, solution.saved, target);
    point.variant.name = name;
    point.solution = std::move(solution);
  };
  problem.capBytes = std::numeric_limits<int64_t>::max();
  for (const char *mode : {"none", "pointwise", "full"}) {
    SavedSetSolution solution =
        measureSavedSet(problem, savedByMode(graph, mode));
    const int64_t bytes = solution.bytes.saved;
    add(mode, std::move(solution));
    all.back().capBytes = bytes;
  }
  const int64_t most = all.front().capBytes;
  for (int i = 0; i < points; ++i) {
    problem.capBytes = points > 1 ? most / (points - 1) * i : most;
    const SavedSetSolution &solution = solveCached(problem);
    if (solution.feasible)
      add("budget", solution);
  }
  std::vector<ParetoPoint> front;
  for (size_t i = 0; i < all.size(); ++i) {
    bool beaten = false;
    for (size_t j = 0; j < all.size() && !beaten; ++j)
      beaten =
          i != j && beats(all[j], all[i]) && (j < i || !beats(all[i], all[j]));
    if (!beaten)
      front.push_back(all[i]);
  }
  std::stable_sort(front.begin(), front.end(),
                   [](const ParetoPoint &a, const ParetoPoint &b) {
                     return a.solution.bytes.saved < b.solution.bytes.saved;
                   });
  return front;
}

} // namespace

const std::vector<ParetoPoint> &paretoFront(const JointGraph &graph,
                                            const Target &target, int points) {
  static std::map<std::string, std::vector<ParetoPoint>> known;
  plan::Sha256 hash;
  hash.update(toJson(graph));
  for (double seconds : instructionTimes(graph, target)) {
    char bytes[sizeof seconds];
    std::memcpy(bytes, &seconds, sizeof seconds);
    hash.update({bytes, sizeof seconds});
  }
  hash.update(std::to_string(points));
  auto [entry, isNew] = known.try_emplace(hash.hexDigest());
  if (isNew)
    entry->second = solveFront(graph, target, points);
  return entry->second;
}

BudgetShare shareBudget(const std::vector<BudgetKind> &kinds, int64_t budget) {
  BudgetShare share;
  OsiClpSolverInterface solver;
  solver.messageHandler()->setLogLevel(0);
  const double infinity = solver.getInfinity();
  int64_t unit = 0;
  double all = 0;
  for (const BudgetKind &kind : kinds) {
    share.leastBytes +=
        kind.calls * *std::min_element(kind.bytes.begin(), kind.bytes.end());
    for (int64_t bytes : kind.bytes)
      unit = std::gcd(unit, bytes);
    for (double seconds : kind.seconds)
      all += seconds * kind.calls;
  }
  share.feasible = share.leastBytes <= budget;
  if (!share.feasible)
    return share;
  unit = std::max<int64_t>(unit, 1);
  const double scale = 1e5 / std::max(all, 1e-300);
  CoinPackedVector bytes;
  int column = 0;
  for (const BudgetKind &kind : kinds) {
    CoinPackedVector calls;
    for (size_t way = 0; way < kind.bytes.size(); ++way, ++column) {
      solver.addCol(0, nullptr, nullptr, 0, kind.calls,
                    kind.seconds[way] * scale);
      solver.setInteger(column);
      calls.insert(column, 1);
      bytes.insert(column, static_cast<double>(kind.bytes[way] / unit));
    }
    solver.addRow(calls, kind.calls, kind.calls);
  }
  solver.addRow(bytes, -infinity, static_cast<double>(budget / unit));
  CbcModel cbc(solver);
  cbc.setLogLevel(0);
  cbc.solver()->messageHandler()->setLogLevel(0);
  cbc.setDblParam(CbcModel::CbcCutoffIncrement, 1e-7);
  cbc.setAllowableGap(1e-7);
  cbc.setMaximumNodes(shareNodes);
  cbc.branchAndBound();
  const double *best = cbc.bestSolution();
  column = 0;
  for (const BudgetKind &kind : kinds) {
    std::vector<int> order(kind.bytes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return kind.bytes[a] < kind.bytes[b];
    });
    std::vector<int> &ways = share.ways.emplace_back();
    for (int way : order) {
      // Without an answer in time, the least for all.
      int times = best ? static_cast<int>(best[column + way] + 0.5)
                       : (way == order.front() ? kind.calls : 0);
      for (; times > 0; --times) {
        ways.push_back(way);
        share.bytes += kind.bytes[way];
        share.seconds += kind.seconds[way];
      }
    }
    column += static_cast<int>(kind.bytes.size());
  }
  return share;
}

} // namespace accel
