//===- CachedEvaluator.cpp - Points evaluated on step models --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/CachedEvaluator.h"

#include "passes/Recompute/Pareto.h"

#include <atomic>
#include <thread>

namespace accel::tune {

/// Whether points of the space mean the same for this model.
static bool matches(const Space &space, const StepModel &model) {
  if (model.calls.size() != space.base.variants.size() ||
      model.parameters.size() != space.base.unitOf.size())
    return false;
  for (const LayerGroup &group : space.groups) {
    const SegmentKind &kind = model.kinds[group.kind];
    if (kind.variants.size() != group.variants.size() &&
        !(kind.loss && kind.variants.size() == 1))
      return false;
  }
  return true;
}

CachedEvaluator::Built &CachedEvaluator::built(int split, int precision,
                                               int loss) {
  auto [it, isNew] = shared->models.try_emplace({split, precision, loss});
  if (!isNew)
    return it->second;
  Built &b = it->second;
  Point point = space.configured;
  point[Knob::Loss] = loss;
  if (auto step = source(space.splits[split].microBatch, precision,
                         loss ? space.modelChunks(point) : 0))
    b.model = step->model;
  if (b.model && !matches(space, *b.model))
    b.model = nullptr;
  if (b.model)
    b.evaluator = std::make_unique<StepEvaluator>(*b.model, target);
  return b;
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
    return "there is no model of this micro-batch";
  return verifyCandidate(*b.model, candidateOf(b, point));
}

Evaluation CachedEvaluator::evaluate(const Point &point) {
  Evaluation j;
  Built &b = built(point);
  j.possible = false;
  if (!b.model)
    return j;
  Candidate candidate = candidateOf(b, point);
  if (!verifyCandidate(*b.model, candidate).empty())
    return j;
  StepPrediction p = b.evaluator->evaluate(candidate);
  j.possible = true;
  j.bytes = p.deviceBytes;
  j.seconds = p.stepSeconds;
  // What does not fit the host cannot run either.
  if (target.host.memoryBytes > 0 && p.hostBytes > target.host.memoryBytes)
    j.possible = false;
  return j;
}

StepPrediction CachedEvaluator::predict(const Point &point, bool detail) {
  Built &b = built(point);
  if (!b.model)
    return {};
  return b.evaluator->evaluate(candidateOf(b, point), detail);
}

const StepPrediction &CachedEvaluator::replayed(
    const Point &point, const replay::AllocatorRules &rules,
    int64_t contextBytes, int64_t budgetBytes, bool onDevice) {
  auto [it, isNew] = shared->replayed.try_emplace({point, onDevice});
  if (!isNew)
    return it->second;
  it->second = predict(point, /*detail=*/true);
  Built &b = built(point);
  if (b.model)
    replayInto(it->second, *b.evaluator, expand(space, *b.model, point), rules,
               contextBytes, budgetBytes, onDevice);
  return it->second;
}

void CachedEvaluator::replayAll(const std::vector<Point> &points,
                                const replay::AllocatorRules &rules,
                                int64_t contextBytes, int64_t budgetBytes,
                                bool onDevice) {
  struct Task {
    const StepModel *model;
    Candidate evaluated, replayed;
    StepPrediction *result;
  };
  std::vector<Task> tasks;
  for (const Point &point : points) {
    const Built &b = built(point);
    if (!b.model)
      continue;
    // Nodes of a map stay where they are.
    auto [it, isNew] = shared->replayed.try_emplace({point, onDevice});
    if (isNew)
      tasks.push_back({b.model.get(), candidateOf(b, point),
                       expand(space, *b.model, point), &it->second});
  }
  std::atomic<size_t> next = 0;
  auto work = [&] {
    std::map<const StepModel *, std::unique_ptr<StepEvaluator>> evaluators;
    for (size_t i = next++; i < tasks.size(); i = next++) {
      Task &task = tasks[i];
      std::unique_ptr<StepEvaluator> &own = evaluators[task.model];
      if (!own)
        own = std::make_unique<StepEvaluator>(*task.model, target);
      *task.result = own->evaluate(task.evaluated, /*detail=*/true);
      replayInto(*task.result, *own, task.replayed, rules, contextBytes,
                 budgetBytes, onDevice);
    }
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min(cores, tasks.size()); ++t)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
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
  Built &b = built(split, space.configured[Knob::Precision], 0);
  if (!b.model)
    return {};
  const LayerGroup &g = space.groups[group];
  const std::vector<SegmentVariant> &all = b.model->kinds[g.kind].variants;
  const SegmentVariant &v = all[all.size() == 1 ? 0 : g.variants[variant]];
  return {v.savedBytes + v.savedInputBytes,
          v.forwardSeconds + v.backwardSeconds};
}

} // namespace accel::tune
