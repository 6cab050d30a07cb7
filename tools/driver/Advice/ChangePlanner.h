//===- ChangePlanner.h - Changes as plans of them ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What is said of a change, or of a setting that a search found, is what `plan`
// says of the changed configuration: estimates choose what is worth planning,
// and each figure that is shown is planned.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_ADVICE_CHANGEPLANNER_H
#define ACCEL_TOOLS_DRIVER_ADVICE_CHANGEPLANNER_H

#include "tools/driver/Advice/Advice.h"

#include <map>

namespace accel {

class ChangePlanner {
public:
  static constexpr size_t changesTold = 8;
  static constexpr size_t frontTold = 7;

  /// All must outlive it. `target`: the machine, or a stand-in for it.
  ChangePlanner(const AdviceInputs &in, Advice &advice, const Target &target)
      : in(in), advice(advice), target(target) {}

  /// Without a target the machine is a stand-in: nothing of it may show.
  StepPrediction trimmed(StepPrediction p) const;
  /// The device and the host hold it.
  bool fits(const StepPrediction &p) const;
  /// The configuration itself.
  tune::Evaluation asConfigured() const;
  /// What a plan of a point says: with its allocator's segments by replay, or
  /// of accel-run's program for it. Whether it fits.
  bool fitsAsPlanned(tune::CachedEvaluator &evaluator, const tune::Point &point,
                     StepPrediction &predicted) const;
  /// Plans points that it is asked for next, in threads.
  void planAhead(tune::CachedEvaluator &evaluator,
                 const std::vector<tune::Point> &points) const;

  /// Plans each change. Those whose configuration is refused are left out.
  void planAnew(tune::CachedEvaluator &evaluator,
                std::vector<tune::Change> &changes) const;
  /// Plans whatever is shown of a search; what is refused only where that is
  /// (`refusals`).
  void planAnew(tune::CachedEvaluator &evaluator, Tuned &tuned,
                bool refusals) const;
  /// Plans a change of the setting that `before` is of.
  void planAnew(tune::CachedEvaluator &evaluator, tune::Change &change,
                const tune::Evaluation &before) const;
  /// Where no change of `planned` fits alone, puts the first pair or triple
  /// that does before the advice's changes.
  void findSmallestSet(const std::vector<tune::Change> &planned);
  /// Keeps the fastest setting of the front whose lines, written to the file,
  /// are planned to fit.
  void certifyLines(tune::CachedEvaluator &evaluator, Tuned &tuned) const;

private:
  /// Of a setting; none where accel-run has no program for it. `onDevice`: as
  /// a plan counts what fits if the full device gets idle segments back; a
  /// search does not choose by that.
  std::optional<StepPrediction> plannedAt(tune::CachedEvaluator &evaluator,
                                          const tune::Point &point,
                                          bool onDevice = true) const;
  /// A setting is planned by the evaluator: not as a program of accel-run, and
  /// not on a stand-in for a machine.
  bool plansSettings() const {
    return in.target && in.executor != FrameworkKind::AccelRun;
  }
  /// replayInto's `onDevice` makes a difference.
  bool returnsSegments() const { return neverShards(in.executor); }
  /// AdviceInputs::replan of one change.
  std::optional<StepPrediction> replan(const std::vector<tune::YamlLine> &lines,
                                       const tune::Flags &flags) const;
  tune::AllocatorOf allocator(bool onDevice) const;
  std::optional<StepPrediction> planned(tune::CachedEvaluator &evaluator,
                                        const tune::Change &change) const;
  void setFigures(tune::Change &change, const StepPrediction &p,
                  const tune::Evaluation &before) const;
  bool mayFit(const std::vector<const tune::Change *> &parts,
              const std::vector<size_t> &chosen) const;
  bool trySets(const std::vector<const tune::Change *> &parts, size_t size,
               size_t first, std::vector<size_t> &chosen);

  const AdviceInputs &in;
  Advice &advice;
  const Target &target;
  /// accel-run's, by setting.
  mutable std::map<tune::Point, std::optional<StepPrediction>> programs;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_ADVICE_CHANGEPLANNER_H
