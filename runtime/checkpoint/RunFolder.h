//===- RunFolder.h - Whose checkpoints are in a folder ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A run is one line of training: what started anew, or left another run at an
// older checkpoint, and everything that continued from its newest one. Each
// checkpoint names its run, and run.json in the job's folder names the run that
// was there last. So `keep` removes a run's own checkpoints only, and
// `--resume auto` follows the run that wrote last, not the highest step.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_RUNFOLDER_H
#define ACCEL_RUNTIME_CHECKPOINT_RUNFOLDER_H

#include <cstdint>
#include <string>
#include <vector>

namespace accel::run {

struct StoredCheckpoint {
  std::string path;
  int64_t step = 0;
  std::string run; // empty: its state.json names none
};

/// Complete checkpoints below `dir`, by step.
std::vector<StoredCheckpoint> checkpointsIn(const std::string &dir);

/// The folder of the checkpoint of `step` in a job's folder.
std::string checkpointName(int64_t step);

/// What a process goes on from.
struct Start {
  std::string run;
  std::string checkpoint; // empty: it starts anew
  std::string note;       // for the person, or empty
  /// It has left another run, whose newer checkpoints stay in the folder.
  bool branches = false;
};

/// What `--resume` means in `dir` (empty: nothing is written): `resume` is "",
/// "auto", a checkpoint, or a folder of checkpoints. Reads only. Throws
/// FileError where the answer would mix two runs: a run that starts anew, or
/// from elsewhere, in a folder with checkpoints; several runs and no run.json.
Start chooseStart(const std::string &dir, const std::string &resume);

/// Makes `dir` and writes its run.json.
void recordRun(const std::string &dir, const Start &start);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_RUNFOLDER_H
