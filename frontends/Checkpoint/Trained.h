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
  /// Steps of the optimizer; none where it keeps no states, and says none.
  std::optional<int64_t> steps;
  /// The trainer's own count (DeepSpeed): those that a loss scale skipped are
  /// in it.
  std::optional<int64_t> stepsRead;
  std::vector<const Tensor *> buffers; // of the model, as it saves them
  /// Sequences that all ranks have trained on, where the checkpoint says it.
  std::optional<int64_t> samples;
  /// Of torch's GradScaler, where there is one.
  std::optional<LossScale> scale;
  /// By their meaning: "random states of a rank (Accelerate)".
  std::map<std::string, LeftBehind> leftBehind;
  Merged owner; // of tensors that no file holds as one
};

/// Reports and returns nothing where weights are missing, or states are of
/// parameters that have no name. `plan`, where it is not null, names those that
/// the optimizer numbers.
std::optional<Trained> readTrained(const Checkpoint &read,
                                   const plan::Plan *plan,
                                   DiagnosticEngine &diagnostics);

/// A parameter of a plan by any of its names; null where it is not there.
const TrainedParameter *findTrained(const Trained &trained,
                                    const plan::Parameter &parameter);
/// The same of what is written to `output`; reports a parameter that is not
/// there.
const TrainedParameter *needTrained(const Trained &trained,
                                    const plan::Parameter &parameter,
                                    const std::string &output,
                                    DiagnosticEngine &diagnostics);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_TRAINED_H
