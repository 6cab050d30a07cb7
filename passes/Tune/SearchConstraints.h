//===- SearchConstraints.h - Which knobs may be turned ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A knob is open if the executor can turn it, and if nobody has fixed it: what
// a YAML or the command line says is fixed, what is left out is open. Under
// `all`, what a YAML says about how the step is run is open as well; what it
// says about the machine, the samples of a step and the results never is.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_SEARCHCONSTRAINTS_H
#define ACCEL_PASSES_TUNE_SEARCHCONSTRAINTS_H

#include "frontends/Job/JobConfig.h"
#include "passes/Tune/Space.h"

namespace accel::tune {

struct TuneRequest {
  /// Written keys may be changed too (`--tune=all`, and recommendations).
  bool all = false;
  /// The precision may be changed, which changes results.
  bool precision = false;
  /// The optimizer's states may be kept in fewer bits, which does so too.
  bool narrowStates = false;
  /// Options of the command line that say it.
  bool microBatch = false, prefetch = false, accumulationMode = false;
  bool lossChunks = false, bucket = false, optimizer = false;
  /// Why nothing may leave the device, or no optimizer with its updates; empty:
  /// it may.
  std::string noOffload, noHostUpdates;
  /// With models of its own over the executor (torchtitan); empty: none.
  std::string trainer;
};

/// Sets `knobs`, `uniform...` and the options that depend on the executor of a
/// space that has its base, mesh, splits and model. `blocks`: the class of a
/// layer's largest block is known, so that half layers can be wrapped.
void openKnobs(Space &space, const JobConfig &job, const TuneRequest &request);

/// Opens checkpointing of every layer on its own, with what was solved for caps
/// in bytes, for an executor that is not asked that way: what accel-run or
/// torch.compile would make of it. False where a written line or the executor
/// leaves nothing to open.
bool openSolved(Space &space);

/// Closes what no YAML can say and makes layers alike, so that every point can
/// be written to a YAML alone. `splits` stay as configured.
/// `scriptFile`: lines of the script's own file are lines of a YAML too.
/// `checkpointingGiven`: the command line says what is recomputed, and goes
/// before every line.
void restrictToYaml(Space &space, bool scriptFile, bool checkpointingGiven);

/// Whether the executor wraps half layers, or several at once.
bool wrapsHalves(FrameworkKind executor);
bool wrapsSeveralLayers(FrameworkKind executor);

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_SEARCHCONSTRAINTS_H
