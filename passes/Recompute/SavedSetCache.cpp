//===- SavedSetCache.cpp - Solved saved sets for the joint search ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/SavedSetCache.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace accel {

namespace {

/// Of what keeping or recomputing everything takes: ways that differ by less
/// are one.
constexpr double distinct = 0.01;

/// What a saved set refers to: the operations, whatever their shapes.
std::string operationsOf(const JointGraph &graph) {
  std::string text;
  for (const plan::Instruction &i : graph.function.instructions)
    text += i.op + ";";
  return text;
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * share)) + "% kept";
}

std::vector<SavedSetPlan> solve(const JointGraph &graph, const Target &target,
                                int points) {
  SavedSetProblem problem(graph, instructionTimes(graph, target));
  problem.capBytes = std::numeric_limits<int64_t>::max();
  const auto none = measureSavedSet(problem, savedByMode(graph, "none"));
  const auto full = measureSavedSet(problem, savedByMode(graph, "full"));
  const auto pointwise =
      measureSavedSet(problem, savedByMode(graph, "pointwise"));
  const double bytes = static_cast<double>(none.bytes.saved);
  std::vector<SavedSetPlan> ways;
  if (bytes <= 0)
    return ways;
  std::vector<const SavedSetSolution *> taken = {&none, &full, &pointwise};
  auto alike = [&](const SavedSetSolution &a, const SavedSetSolution &b) {
    return std::abs(static_cast<double>(a.bytes.saved - b.bytes.saved)) <
               distinct * bytes &&
           std::abs(a.recomputeSeconds - b.recomputeSeconds) <=
               distinct * full.recomputeSeconds;
  };
  const std::vector<ParetoPoint> &front = paretoFront(graph, target, points);
  for (size_t i = front.size(); i-- > 0;) {
    const ParetoPoint &point = front[i];
    const SavedSetSolution &solution = point.solution;
    if (point.variant.name != "budget" ||
        std::any_of(taken.begin(), taken.end(), [&](const auto *other) {
          return alike(*other, solution) ||
                 other->bytes.saved == solution.bytes.saved;
        }))
      continue;
    taken.push_back(&solution);
    const std::string name =
        percent(static_cast<double>(solution.bytes.saved) / bytes);
    // The caps are further apart than that: two of one name are one.
    if (ways.empty() || ways.back().name != name)
      ways.push_back(
          {name, static_cast<double>(point.capBytes) / bytes, solution.saved});
  }
  return ways;
}

} // namespace

const std::vector<SavedSetPlan> &SavedSetCache::of(const std::string &name,
                                                   const JointGraph &graph,
                                                   const Target &target) {
  static const std::vector<SavedSetPlan> nothing;
  if (points <= 0)
    return nothing;
  auto [here, isNew] = known.try_emplace({name, operationsOf(graph)});
  if (!isNew)
    return here->second;
  auto [model, isFirst] = first.try_emplace(name);
  if (isFirst) {
    model->second = solve(graph, target, points);
    return here->second = model->second;
  }
  here->second = model->second;
  SavedSetProblem problem(graph, instructionTimes(graph, target));
  problem.capBytes = std::numeric_limits<int64_t>::max();
  const int64_t all =
      measureSavedSet(problem, savedByMode(graph, "none")).bytes.saved;
  for (SavedSetPlan &way : here->second) {
    problem.capBytes = std::llround(way.share * static_cast<double>(all));
    const SavedSetSolution &found = solveCached(problem);
    way.saved = found.feasible ? found.saved : savedByMode(graph, "pointwise");
  }
  return here->second;
}

} // namespace accel
