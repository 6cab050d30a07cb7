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

#include "runtime/checkpoint/OwnFolders.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace accel::run {

struct StoredCheckpoint {
  std::string path;
  int64_t step = 0;
  std::string run;      // empty: nothing in it names one
  bool damaged = false; // its state.json is not what the run has written
};

/// Complete checkpoints below `dir`, by step, damaged ones among them.
std::vector<StoredCheckpoint> checkpointsIn(const std::string &dir);

/// The folder of the checkpoint of `step` in a job's folder.
std::string checkpointName(int64_t step);

/// After a crash: gives a replaced checkpoint its name back where the new one
/// has not come, and finishes removals.
void tidy(const std::string &dir);

/// A folder below `dir` that has a checkpoint's name and is none of
/// accel-run's, or "". One that others have added files to is still its own.
std::string foreignFolder(const std::string &dir);

/// What a process goes on from.
struct Start {
  std::string run;
  std::string checkpoint; // empty: it starts anew
  std::string note;       // for the person, or empty
};

/// What `--resume` means in `dir` (empty: nothing is written): `resume` is "",
/// "auto", a checkpoint, or a folder of checkpoints. Reads only. Throws
/// FileError where the answer would mix two runs: a run that starts anew, or
/// from elsewhere, in a folder with checkpoints; several runs and no run.json.
Start chooseStart(const std::string &dir, const std::string &resume);

/// One process writes to a job's folder at a time: rank 0, or the one that is
/// alone, holds this from before it decides until it ends.
class FolderLock {
public:
  FolderLock() = default;
  /// Makes `dir`; nothing for an empty one. Throws FileError, naming the
  /// holder, where another process has the lock. On a file system that has no
  /// locks nobody is kept out.
  explicit FolderLock(const std::string &dir);
  FolderLock(FolderLock &&other) noexcept
      : fd(other.fd), text(std::move(other.text)) {
    other.fd = -1;
  }
  FolderLock &operator=(FolderLock &&other) noexcept {
    std::swap(fd, other.fd);
    std::swap(text, other.text);
    return *this;
  }
  ~FolderLock();
  /// What it has written into the folder, as no other lock has: who sees it
  /// there sees the same folder. Empty where it could not.
  const std::string &mark() const { return text; }

private:
  int fd = -1;
  std::string text;
};

/// Waits until the lock that has written `mark` shows in `dir`: a network file
/// system may take some seconds. False if it does not come within `patience`.
bool awaitMark(const std::string &dir, const std::string &mark,
               std::chrono::milliseconds patience);

/// True if `dir` has a run.json of accel-run.
bool isRecorded(const std::string &dir);
/// Makes `dir` and writes its run.json, unless that names the run already. A
/// run.json of somebody else gets another name.
void recordRun(const std::string &dir, const Start &start);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_RUNFOLDER_H
