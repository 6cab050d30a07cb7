//===- CachedEvaluator.h - Points evaluated on step models ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_CACHEDEVALUATOR_H
#define ACCEL_PASSES_TUNE_CACHEDEVALUATOR_H

#include "passes/FrameworkSteps/PlannedSteps.h"
#include "passes/Tune/Search.h"

#include <functional>
#include <map>
#include <memory>

namespace accel::tune {

/// The decided step of a micro-batch size under Space::precisions[precision],
/// with that many loss chunks (0: as configured; Space::modelChunks); null if
/// there is none (the reason was reported).
using ModelSource = std::function<std::shared_ptr<const DecidedStep>(
    int64_t microBatch, int precision, int64_t lossChunks)>;
/// The step model of the configuration as edited: in the point's whole mesh and
/// precision, with the micro-batch of its split, and with Liger Kernel's
/// operators where the point takes them; null where it is refused.
using EditedSource =
    std::function<std::shared_ptr<const StepModel>(const Point &)>;

/// The allocator of a device, and what it has to share out: as predictSteps
/// takes them.
struct AllocatorOf {
  replay::AllocatorRules rules;
  int64_t contextBytes = 0;
  int64_t budgetBytes = 0; // 0: no end
  bool onDevice = false;
};

/// Evaluates points of a space by StepEvaluators, one per step model, each
/// built when it is first needed.
class CachedEvaluator {
public:
  /// All must outlive it.
  CachedEvaluator(const Space &space, const Target &target, ModelSource source,
                  EditedSource edited = {})
      : space(space), target(target), source(std::move(source)),
        edited(std::move(edited)), shared(std::make_shared<Shared>()) {}
  /// For the same options of which others are open: shares what was built and
  /// planned with `other`.
  CachedEvaluator(const Space &space, const CachedEvaluator &other)
      : space(space), target(other.target), source(other.source),
        edited(other.edited), shared(other.shared) {}

  /// Impossible where the executor refuses the candidate (verifyCandidate).
  Evaluation evaluate(const Point &point);
  StepPrediction predict(const Point &point, bool detail);
  /// What a plan of the point says (predictSteps), made once for a point: rules
  /// and bytes are the same in all calls.
  const StepPrediction &planned(const Point &point,
                                const AllocatorOf &allocator);
  /// Points that are planned in threads; `finish`, once and before any of them
  /// is asked for, waits for them. The evaluator must outlive it.
  class Planning {
  public:
    void finish();

  private:
    friend class CachedEvaluator;
    explicit Planning(StepPredictions predictions)
        : predictions(std::move(predictions)) {}
    StepPredictions predictions;
    std::vector<StepPrediction *> results;
  };
  [[nodiscard]] Planning startPlanning(const std::vector<Point> &points,
                                       const AllocatorOf &allocator);
  /// Makes `planned` of all these points.
  void planAll(const std::vector<Point> &points, const AllocatorOf &allocator);
  /// Why the executor refuses the point, or "".
  std::string problem(const Point &point);
  /// Saved bytes, and seconds of forward and backward.
  VariantCost cost(int split, int group, int variant);
  /// Search.h's ShareOut, by passes/Recompute's shareBudget.
  std::vector<int> shareOut(int split, int64_t bytes);
  /// Null if there is none.
  const StepModel *model(const Point &point);

private:
  struct Built {
    std::shared_ptr<const StepModel> model; // null: cannot be
    std::unique_ptr<StepEvaluator> evaluator;
  };
  /// `mesh`: the first with these functions (Space::functionsOf).
  Built &built(int split, int precision, int loss, int mesh);
  Built &built(const Point &point) {
    return built(point[Knob::Split], point[Knob::Precision],
                 space.functionsOfLoss(point), space.functionsOf(point));
  }
  Candidate candidateOf(const Built &b, const Point &point) const;
  struct Shared {
    std::map<std::array<int, 4>, Built> models;
    std::map<std::pair<Point, bool>, StepPrediction> planned;
  };

  const Space &space;
  const Target &target;
  ModelSource source;
  EditedSource edited;
  std::shared_ptr<Shared> shared;
};

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_CACHEDEVALUATOR_H
