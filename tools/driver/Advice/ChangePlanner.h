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

namespace accel {

class ChangePlanner {
public:
  static constexpr size_t changesTold = 6;

  /// All must outlive it. `target`: the machine, or a stand-in for it.
  ChangePlanner(const AdviceInputs &in, Advice &advice, const Target &target)
      : in(in), advice(advice), target(target) {}

  /// Without a target the machine is a stand-in: nothing of it may show.
  StepPrediction trimmed(StepPrediction p) const;
  /// The configuration itself.
  tune::Evaluation asConfigured() const;
  /// Predicts a point with its allocator's segments by replay; whether it fits
  /// the device.
  bool fitsByReplay(tune::CachedEvaluator &evaluator, const tune::Point &point,
                    StepPrediction &predicted) const;

  /// Plans each change. Those whose configuration is refused are left out.
  void planAnew(tune::CachedEvaluator &evaluator,
                std::vector<tune::Change> &changes) const;
  /// Plans whatever is shown of a search.
  void planAnew(tune::CachedEvaluator &evaluator, Tuned &tuned) const;
  /// Where no change of `planned` fits alone, puts the first pair or triple
  /// that does before the advice's changes.
  void findSmallestSet(const std::vector<tune::Change> &planned);
  /// Keeps the fastest setting of the front whose lines, written to the file,
  /// are planned to fit.
  void certifyLines(Tuned &tuned) const;

private:
  bool fits(const StepPrediction &p) const;
  std::optional<StepPrediction> planned(tune::CachedEvaluator &evaluator,
                                        const tune::Change &change) const;
  void setFigures(tune::Change &change, const StepPrediction &p) const;
  bool mayFit(const std::vector<const tune::Change *> &parts,
              const std::vector<size_t> &chosen) const;
  bool trySets(const std::vector<const tune::Change *> &parts, size_t size,
               size_t first, std::vector<size_t> &chosen);

  const AdviceInputs &in;
  Advice &advice;
  const Target &target;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_ADVICE_CHANGEPLANNER_H
