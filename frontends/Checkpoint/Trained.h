//===- Trained.h - Weights and states of an optimizer -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What a run goes on from: each parameter by its name, beside what an optimizer
// keeps of it. accel-run's checkpoints have that, and those of torch that name
// parameters: torch.distributed.checkpoint of get_state_dict, Accelerate's
// FSDP.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_TRAINED_H
#define ACCEL_FRONTENDS_CHECKPOINT_TRAINED_H

#include "frontends/Checkpoint/Merge.h"
#include "frontends/Checkpoint/ParamGroups.h"

#include <algorithm>

namespace accel::plan {
struct Parameter;
struct Plan;
} // namespace accel::plan

namespace accel::checkpoint {

struct TrainedParameter {
  const Tensor *weight = nullptr;
  std::map<std::string, const Tensor *> states; // by name: "exp_avg"
};

/// Files that are there and go on nowhere.
struct LeftBehind {
  Beside what = Beside::Nothing;
  std::vector<std::string> files;
};

struct Trained {
  std::map<std::string, TrainedParameter> parameters;
  /// Steps of the optimizer, without those that a loss scale skipped; none
  /// where nothing says them.
  std::optional<int64_t> steps;
  /// Which file says them, where the optimizer itself does not; else "".
  std::string stepsFrom;
  /// The trainer's own count, with skipped steps, where it keeps one.
  std::optional<int64_t> stepsRead;
  /// Of accel-run, as hyperparameters of groups tell them: "muon".
  std::set<std::string> optimizers;
  /// Hyperparameters that are others in the plan, by their names.
  std::vector<Replaced> replaced;
  /// Of the model, as it saves them. Where neither the checkpoint nor a plan
  /// tells them from parameters, they are among these.
  std::vector<const Tensor *> buffers;
  /// Sequences that all ranks have trained on, where the checkpoint says it.
  std::optional<int64_t> samples;
  /// Of torch's GradScaler, where there is one.
  std::optional<LossScale> scale;
  /// By their meaning: "random states of a rank (Accelerate)".
  std::map<std::string, LeftBehind> leftBehind;
  Merged owner; // of tensors that no file holds as one

  /// Of the optimizer, as its states count them.
  int64_t optimizerSteps() const { return steps.value_or(0); }
  /// That have read samples, as trainers count them.
  int64_t stepsDone() const {
    return std::max(optimizerSteps(), stepsRead.value_or(0));
  }
  bool hasStates() const;
};

/// Reports and returns nothing where weights are missing, or states are of
/// parameters that have no name. `plan`, where it is not null, names those that
/// the optimizer numbers. `steps`: what the user says that the optimizer has
/// done, which one that counts itself may not contradict; 0: nothing.
std::optional<Trained> readTrained(const Checkpoint &read,
                                   const plan::Plan *plan, int64_t steps,
                                   DiagnosticEngine &diagnostics);

/// A parameter of a plan by any of its names, that of the states where the
/// checkpoint has several; null where it is not there, which isOfModel()
/// excludes.
const TrainedParameter *findTrained(const Trained &trained,
                                    const plan::Parameter &parameter);
/// Whether the checkpoint has each parameter of the plan, and nothing that the
/// plan has not, in the plan's shapes: one parameter where the plan ties names
/// of several, and no states of those that it freezes. Reports what is not so
/// for what is written to `output`, where it would be lost.
bool isOfModel(const Trained &trained, const plan::Plan &plan,
               const std::string &output, DiagnosticEngine &diagnostics);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_TRAINED_H
