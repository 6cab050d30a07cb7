//===- TorchOptimizer.h - Groups and schedule as torch keeps them -*- C++ -*-=//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_TORCHOPTIMIZER_H
#define ACCEL_FRONTENDS_CHECKPOINT_TORCHOPTIMIZER_H

#include "frontends/Checkpoint/PickleWriter.h"
#include "frontends/Checkpoint/Trained.h"

#include <functional>
#include <optional>
#include <vector>

namespace accel::checkpoint {

using WriteValue = std::function<void(PickleWriter &)>;

/// Whether the plan's optimizer is AdamW, whose groups are written; reports
/// another one for what is written to `output`.
bool needAdamw(const plan::Plan &plan, const std::string &output,
               DiagnosticEngine &diagnostics);

/// Whether the checkpoint has AdamW's states of `parameter` and no others;
/// reports what is not so. torch loads others without a word, and stops at the
/// first step.
bool needAdamwStates(const TrainedParameter &trained,
                     const plan::Parameter &parameter,
                     const std::string &output, DiagnosticEngine &diagnostics);

/// Gives the options of group `group` of torch's AdamW by their names, without
/// "params". The rate is that of the step behind `steps`.
void groupOptions(
    const plan::Plan &plan, size_t group, int64_t steps,
    const std::function<void(const char *, const WriteValue &)> &take);

/// Writes "param_groups" and the list of an optimizer's groups, with their
/// options. Of each there are as many parameters as `counts` says, numbered on
/// over the groups; one without any is left out unless `empty`: the Trainer has
/// a group without decay whatever is trained.
void paramGroups(PickleWriter &out, const plan::Plan &plan,
                 const std::vector<size_t> &counts, int64_t steps,
                 bool empty = false);

/// Writes keys and values of LambdaLR's state, which all schedules of
/// transformers are, after `steps` steps of the optimizer; `stepped` is how
/// often the schedule was called. Rates are those of groups in the plan's
/// order; without `rated` they are left out, and a script's schedule keeps its
/// own.
void scheduleState(PickleWriter &out, const plan::Plan &plan, int64_t steps,
                   int64_t stepped, bool rated = true);

/// The same of GradScaler's; `scale` is the plan's first where there is none.
void scaleState(PickleWriter &out, const plan::Plan &plan,
                const std::optional<LossScale> &scale);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_TORCHOPTIMIZER_H
