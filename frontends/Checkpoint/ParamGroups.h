//===- ParamGroups.h - param_groups of a saved optimizer --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What Optimizer.state_dict() says beside tensors: the groups with their
// hyperparameters, and counts of steps that are plain numbers.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_PARAMGROUPS_H
#define ACCEL_FRONTENDS_CHECKPOINT_PARAMGROUPS_H

#include "frontends/Checkpoint/Checkpoint.h"
#include "frontends/Checkpoint/Pickle.h"

#include <map>
#include <set>

namespace accel::plan {
struct Optimizer;
}

namespace accel::checkpoint {

struct ParamGroup {
  std::vector<std::string> params; // names or numbers; never empty
  /// "param_names" of an optimizer that was made from named parameters: of each
  /// of `params`, as its script named it. Empty where there are none.
  std::vector<std::string> names;
  size_t index = 0; // in param_groups
  /// By name: "lr", "betas"; a flag is 0 or 1. Tensors are left out, which
  /// takeTensors adds.
  std::map<std::string, std::vector<double>> values;
  std::map<std::string, std::string> texts; // by name: "adjust_lr_fn"

  /// The names of `values`.
  std::set<std::string> hyperparameters() const;
  /// The rate before a schedule, where there is one.
  std::optional<double> baseRate() const;
  std::optional<double> value(const std::string &key) const;
};

/// A rate that is a tensor, as a compiled or captured step wants it: adds those
/// of `part` with one element to the groups that lie below the keys `inside`.
/// False, reported, where one cannot be read.
bool takeTensors(const Part &part, const std::vector<std::string> &inside,
                 std::vector<ParamGroup> &groups,
                 DiagnosticEngine &diagnostics);

struct SavedOptimizer {
  std::vector<ParamGroup> groups;
  std::map<std::string, double> steps; // by parameter
};

/// Counts of steps in Optimizer.state_dict() that are no tensors, by parameter.
std::map<std::string, double> stepsAt(const Pickle &pickle, ValueId optimizer);

/// Those of Optimizer.state_dict() that have parameters.
std::vector<ParamGroup> paramGroupsAt(const Pickle &pickle, ValueId optimizer);

/// The optimizer that the file `path` has below the keys `inside`; reports a
/// file that cannot be read.
std::optional<SavedOptimizer>
readSavedOptimizer(const std::string &path,
                   const std::vector<std::string> &inside,
                   DiagnosticEngine &diagnostics);

/// Reports an update that no plan has: amsgrad, maximize, timm's caution,
/// Adam's coupled weight decay or averages that are not corrected, Muon's other
/// rates and coefficients.
bool checkUpdates(const std::vector<ParamGroup> &groups,
                  const std::string &path, DiagnosticEngine &diagnostics);

/// Reports states of Adam whose update another optimizer of torch makes: its
/// Adam and AdamW always save `amsgrad`, RAdam has the same states without it.
/// Groups of apex (`bias_correction`) and of transformers' former AdamW
/// (`correct_bias`) have never had it. `hyperparameters`: the names of all.
bool checkAdam(const std::set<std::string> &hyperparameters,
               const std::set<std::string> &kinds, const std::string &path,
               DiagnosticEngine &diagnostics);

/// Reports names of hyperparameters that LAMB and LARS have, whose states are
/// those of AdamW and SGD.
bool checkScaled(const std::set<std::string> &hyperparameters,
                 const std::string &path, DiagnosticEngine &diagnostics);

bool sameHyperparameter(double a, double b);

/// A hyperparameter that goes on as the plan has it, by the plan's name of it.
struct Replaced {
  std::string name, saved, planned;
  auto operator<=>(const Replaced &) const = default;
};
/// Those of a group that becomes the plan's group `index`.
std::vector<Replaced> replacedBy(const ParamGroup &saved,
                                 const plan::Optimizer &plan, size_t index);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_PARAMGROUPS_H
