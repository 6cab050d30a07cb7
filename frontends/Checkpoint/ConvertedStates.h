//===- ConvertedStates.h - Optimizers whose states go on --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_CONVERTEDSTATES_H
#define ACCEL_FRONTENDS_CHECKPOINT_CONVERTEDSTATES_H

#include "frontends/Diagnostics/Diagnostics.h"

#include <set>
#include <string>

namespace accel::plan {
struct OptimizerDescription;
struct Plan;
} // namespace accel::plan

namespace accel::checkpoint {

/// What a refusal of other states advises.
inline constexpr const char *convertedStates =
    "states of AdamW, SGD, Lion and Muon are converted; merge writes weights "
    "alone";

/// Reports `kinds` of states ("exp_avg") of which one has an element for a row
/// or a column of a parameter, as Adafactor's.
bool checkFactored(const std::set<std::string> &kinds, const std::string &path,
                   DiagnosticEngine &diagnostics);

/// Reports `kinds` that together are those of no optimizer that accel-run has.
bool checkKnown(const std::set<std::string> &kinds, const std::string &path,
                DiagnosticEngine &diagnostics);

/// The optimizer that the hyperparameters of its groups tell, where states of
/// these kinds may be of several: torch's SGD and Muon both keep a
/// "momentum_buffer". "": they tell nothing.
std::string optimizerOfGroups(const std::set<std::string> &kinds,
                              const std::set<std::string> &hyperparameters);

/// The optimizer of accel-run that goes on from states of these kinds: the one
/// that `told` names (optimizerOfGroups), else the plan's where they may be of
/// several, as `matrices` says: none is of a parameter without two dimensions.
/// Reports and returns nothing where there is none, or the plan has another
/// one; warns where nothing tells which it is.
const plan::OptimizerDescription *
optimizerOfStates(const std::set<std::string> &kinds,
                  const std::set<std::string> &told, bool matrices,
                  const plan::Plan *plan, const std::string &path,
                  DiagnosticEngine &diagnostics);

/// Whether `plan` is not null, and its optimizer keeps nothing of parameters
/// (SGD without momentum): a checkpoint without states is then whole.
bool keepsNoStates(const plan::Plan *plan);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_CONVERTEDSTATES_H
