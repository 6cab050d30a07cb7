//===- Convert.h - A checkpoint for another trainer -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Writes weights and states of the optimizer as another trainer resumes from
// them. Like merge, it copies through one buffer, and what it writes appears
// when it is whole. A plan that is given here is one of the checkpoint's model
// (isOfModel).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_CONVERT_H
#define ACCEL_FRONTENDS_CHECKPOINT_CONVERT_H

#include "frontends/Checkpoint/Trained.h"

namespace accel::plan {
struct Plan;
}

namespace accel::checkpoint {

struct Converted {
  int64_t parameters = 0, states = 0, bytes = 0, files = 0;
  int64_t steps = 0; // that have read samples
};

/// Writes a checkpoint of accel-run, which any number of ranks resume from:
/// `samples` sequences were trained on, by all ranks; 0: as the checkpoint
/// says, which another number may not contradict. `plan`, where it is not null,
/// says which parameters need states of the optimizer, and whether it has any.
/// Reports and returns nothing where that fails.
std::optional<Converted> convertToRun(const Trained &trained,
                                      const plan::Plan *plan, int64_t samples,
                                      const std::string &output,
                                      const std::function<void(int64_t)> &done,
                                      DiagnosticEngine &diagnostics);

/// Writes {"model": ..., "optim": {"state": ..., "param_groups": ...}} for
/// torch.distributed.checkpoint, and where the plan is in fp16 scaler.pt
/// beside, which is GradScaler.state_dict(), as Accelerate has it; for
/// Accelerate the folders that its load_state reads under FSDP2. `plan` says
/// the groups of the optimizer and the other names of tied parameters; without
/// it neither is written, and Accelerate needs them. Reports and returns
/// nothing where that fails.
std::optional<Converted> convertToDcp(const Trained &trained, bool accelerate,
                                      const plan::Plan *plan,
                                      const std::string &output,
                                      const std::function<void(int64_t)> &done,
                                      DiagnosticEngine &diagnostics);

/// Writes the folder that Accelerate's load_state reads under DDP and in one
/// process, or with `trainer` a checkpoint of transformers' Trainer: `plan`
/// says the groups of the optimizer, whose order numbers the parameters.
/// Reports and returns nothing where that fails.
std::optional<Converted>
convertToReplicas(const Trained &trained, const plan::Plan &plan, bool trainer,
                  const std::string &output,
                  const std::function<void(int64_t)> &done,
                  DiagnosticEngine &diagnostics);

/// What of DeepSpeed's load_checkpoint a folder is for. ZeRO 1 and 2 read the
/// same one.
struct ZeroFolder {
  int64_t ranks = 1, stage = 2;
  /// Elements of a rank behind which ZeRO 3 begins another sub-group of a group
  /// (sub_group_size of zero_optimization, DeepSpeed's default).
  int64_t subGroup = 1'000'000'000;
};

/// Writes the folder that DeepSpeed's load_checkpoint reads. `plan` says the
/// groups of the optimizer, the other names of tied parameters, and whether the
/// engine is in bf16, after which it names its files. Reports and returns
/// nothing where that fails, or a weight or a state is not in float32.
std::optional<Converted> convertToZero(const Trained &trained,
                                       const plan::Plan &plan,
                                       const ZeroFolder &zero,
                                       const std::string &output,
                                       const std::function<void(int64_t)> &done,
                                       DiagnosticEngine &diagnostics);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_CONVERT_H
