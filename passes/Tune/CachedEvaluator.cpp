//===- CachedEvaluator.cpp - Points evaluated on step models --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/CachedEvaluator.h"

#include "passes/FrameworkSteps/HostRoom.h"
#include "passes/Recompute/Pareto.h"

#include <algorithm>

namespace accel::tune {

/// Whether points of the space mean the same for this model.
static bool matches(const Space &space, const StepModel &model) {
  if (model.calls.size() != space.base.variants.size() ||
      model.parameters.size() != space.base.unitOf.size())
    return false;
  for (const LayerGroup &group : space.groups) {
    const SegmentKind &kind = model.kinds[group.kind];
    // Solved ways come last, and models of other meshes have none.
    const auto unsolved = static_cast<size_t>(
        std::count(group.solved.begin(), group.solved.end(), false));
    if (kind.variants.size() != group.variants.size() &&
        kind.variants.size() != unsolved &&
        !(kind.loss && kind.variants.size() == 1))
      return false;
  }
  return true;
}

CachedEvaluator::Built &CachedEvaluator::built(int split, int precision,
                                               int loss, int mesh) {
  auto [it, isNew] = shared->models.try_emplace({split, precision, loss, mesh});
  if (!isNew)
    return it->second;
  Built &b = it->second;
  Point point = space.configured;
  point[Knob::Split] = split;
  point[Knob::Precision] = precision;
  point[Knob::Loss] = loss;
  if (mesh)
    point[Knob::Mesh] = mesh;
  if (mesh || (loss && space.base.executor != FrameworkKind::AccelRun))
    b.model = edited(point);
  else if (auto step = source(space.splits[split].microBatch, precision,
                              loss ? space.modelChunks(point) : 0))
    b.model = step->model;
  if (b.model && !matches(space, *b.model))
    b.model = nullptr;
  if (b.model)
    b.evaluator = std::make_unique<StepEvaluator>(*b.model, target);
  return b;
}

/// The point has calls in ways that the model lacks.
static bool lacksWays(const Space &space, const StepModel &model,
                      const Point &point) {
  for (const LayerGroup &group : space.groups) {
    const size_t ways = model.kinds[group.kind].variants.size();
    for (size_t v = 0; ways > 1 && v < group.variants.size(); ++v)
      if (point.counts[group.offset + v] &&
          static_cast<size_t>(group.variants[v]) >= ways)
        return true;
  }
  return false;
}

/// A loss in parts is one function, forward and backward: it has one way.
Candidate CachedEvaluator::candidateOf(const Built &b,
                                       const Point &point) const {
  Candidate candidate = expand(space, *b.model, point);
  for (size_t c = 0; c < candidate.variants.size(); ++c)
    if (b.model->kinds[b.model->calls[c].kind].variants.size() == 1)
      candidate.variants[c] = 0;
  return candidate;
}

const StepModel *CachedEvaluator::model(const Point &point) {
  return built(point).model.get();
}

std::string CachedEvaluator::problem(const Point &point) {
  Built &b = built(point);
  if (!b.model)
    return "there is no model of this micro-batch or mesh";
  return verifyCandidate(*b.model, candidateOf(b, point));
}

Evaluation CachedEvaluator::evaluate(const Point &point) {
  Evaluation j;
  Built &b = built(point);
  j.possible = false;
  if (!b.model || lacksWays(space, *b.model, point))
    return j;
  Candidate candidate = candidateOf(b, point);
  if (!verifyCandidate(*b.model, candidate).empty())
    return j;
  StepPrediction p = b.evaluator->evaluate(candidate);
  j.possible = true;
  j.bytes = p.deviceBytes;
  j.seconds = p.stepSeconds;
  // What does not fit the host cannot run either.
  if (!hostHolds(target, space.base.executor, p.hostBytes))
    j.possible = false;
  return j;
}

StepPrediction CachedEvaluator::predict(const Point &point, bool detail) {
  Built &b = built(point);
  if (!b.model)
    return {};
  return b.evaluator->evaluate(candidateOf(b, point), detail);
}

const StepPrediction &CachedEvaluator::planned(const Point &point,
                                               const AllocatorOf &allocator) {
  planAll({point}, allocator);
  return shared->planned.at({point, allocator.onDevice});
}

CachedEvaluator::Planning
CachedEvaluator::startPlanning(const std::vector<Point> &points,
                               const AllocatorOf &allocator) {
  Planning planning{
      StepPredictions({target, allocator.contextBytes, allocator.budgetBytes})};
  for (const Point &point : points) {
    // Nodes of a map stay where they are.
    auto [it, isNew] = shared->planned.try_emplace({point, allocator.onDevice});
    const Built &b = built(point);
    if (!isNew || !b.model)
      continue;
    planning.predictions.start(
        {b.model, candidateOf(b, point), allocator.rules, allocator.onDevice});
    planning.results.push_back(&it->second);
  }
  return planning;
}

void CachedEvaluator::Planning::finish() {
  std::vector<StepPrediction> predicted = predictions.take();
  for (size_t i = 0; i < results.size(); ++i)
    *results[i] = std::move(predicted[i]);
}

void CachedEvaluator::planAll(const std::vector<Point> &points,
                              const AllocatorOf &allocator) {
  startPlanning(points, allocator).finish();
}

std::vector<int> CachedEvaluator::shareOut(int split, int64_t bytes) {
  std::vector<BudgetKind> kinds;
  std::vector<std::vector<int>> positions; // of each way, in Point::counts
  for (size_t g = 0; g < space.groups.size(); ++g) {
    const LayerGroup &group = space.groups[g];
    BudgetKind &kind = kinds.emplace_back();
    std::vector<int> &at = positions.emplace_back();
    kind.calls = static_cast<int>(group.calls.size());
    for (size_t v = 0; v < group.variants.size(); ++v) {
      if (!group.allowed[v])
        continue;
      VariantCost c = cost(split, static_cast<int>(g), static_cast<int>(v));
      kind.bytes.push_back(c.bytes);
      kind.seconds.push_back(c.seconds);
      at.push_back(group.offset + static_cast<int>(v));
    }
  }
  const BudgetShare share = shareBudget(kinds, bytes);
  if (!share.feasible)
    return {};
  std::vector<int> counts(space.configured.counts.size(), 0);
  for (size_t k = 0; k < kinds.size(); ++k)
    for (int way : share.ways[k])
      ++counts[positions[k][way]];
  return counts;
}

VariantCost CachedEvaluator::cost(int split, int group, int variant) {
  Built &b = built(split, space.configured[Knob::Precision], 0, 0);
  if (!b.model)
    return {};
  const LayerGroup &g = space.groups[group];
  const std::vector<SegmentVariant> &all = b.model->kinds[g.kind].variants;
  const SegmentVariant &v = all[all.size() == 1 ? 0 : g.variants[variant]];
  return {v.savedBytes + v.savedInputBytes,
          v.forwardSeconds + v.backwardSeconds};
}

} // namespace accel::tune
