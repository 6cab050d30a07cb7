//===- OwnFolders.h - What accel-run may remove -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A run removes and replaces folders: old checkpoints, the trained model of the
// training before, what a crash has left. People work in the same folder: they
// add a model card or converted weights, edit a file, copy a checkpoint. Here
// alone is decided what a run removes: folders that hold nothing but what
// accel-run has written. All else gets another name, and a warning says so.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_OWNFOLDERS_H
#define ACCEL_RUNTIME_CHECKPOINT_OWNFOLDERS_H

#include "runtime/checkpoint/Files.h"
#include "runtime/plan/OutputModel.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace accel::run {

/// The folders that accel-run makes.
enum class Made { Checkpoint, Model };

/// A folder without state.json is no checkpoint.
inline const FolderMark checkpointMark{"state.json",
                                       FolderMark::Says::Complete};
inline const FolderMark modelMark{plan::outputModelMark,
                                  FolderMark::Says::Owner};

/// A file of a model's folder, as the mark of the folder lists it.
struct ModelFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256; // empty: weights, which are known by name and size
};

/// The text of accel-run.json: what a training of `run` writes after `step`.
std::string modelMarkText(const std::string &run, int64_t step,
                          const std::vector<ModelFile> &files);

/// A JSON object from a file; null if there is none.
nlohmann::json readObject(const std::string &path);

/// What at `path` has a name that accel-run does not write, as a message goes
/// on ("has 'mine', which accel-run has not written"), or "".
std::string addedTo(const std::string &path, Made made);

/// Removes what accel-run has written at `path`, if anything is there. What
/// holds something else is kept aside. A checkpoint first loses its name, so
/// that no half of one counts.
void removeOwn(const std::string &path, Made made);
/// Removes it if nothing else is there; otherwise leaves it, and says as
/// addedTo does what there is: files that were changed too.
std::string removeIfOwn(const std::string &path, Made made);
/// Removes what could not be written to its end, unless it holds something
/// else.
void removeUnfinished(const std::string &path, Made made) noexcept;
/// Puts the folder `from`, which is complete, in the place of `to`, and then
/// does away with what stood there as removeOwn does.
void replaceOwn(const std::string &from, const std::string &to, Made made);
/// Gives what is at `path`, if anything is, a free name ("step-00000004.kept")
/// and warns; `why` as addedTo says it, `mark` of a folder.
void keepAside(const std::string &path, const std::string &why,
               const FolderMark &mark = checkpointMark);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_OWNFOLDERS_H
