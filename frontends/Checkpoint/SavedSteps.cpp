//===- SavedSteps.cpp - Steps that a schedule has counted -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/SavedSteps.h"
#include "frontends/Checkpoint/TorchSave.h"

#include <algorithm>
#include <filesystem>

namespace accel::checkpoint {

namespace {

/// last_epoch of LRScheduler.state_dict(). Of ReduceLROnPlateau it counts
/// evaluations.
std::optional<int64_t> countOf(const std::string &path) {
  std::optional<int64_t> count;
  DiagnosticEngine unread; // such a file is left behind all the same
  takeSavedPickle(path, unread, [&](const Pickle &pickle) {
    const auto last = pickle.field(pickle.root(), "last_epoch");
    if (last && !pickle.field(pickle.root(), "num_bad_epochs"))
      count = pickle.integer(*last);
    return true;
  });
  return count && *count >= 0 ? count : std::nullopt;
}

} // namespace

std::optional<int64_t> trainerSteps(const Checkpoint &read) {
  return read.format == FolderFormat::AccelRun ? std::nullopt : read.step;
}

std::optional<SavedSteps> stepsBeside(const Checkpoint &read) {
  const Part *schedule = nullptr;
  int64_t schedules = 0, processes = 0;
  for (const Part &part : read.parts) {
    processes += part.beside == Beside::RandomStates;
    if (part.beside == Beside::Schedule) {
      schedule = &part;
      ++schedules;
    }
  }
  std::optional<int64_t> count;
  if (schedules == 1)
    count =
        countOf((std::filesystem::path(read.folder) / schedule->path).string());
  if (const auto done = trainerSteps(read)) {
    // Its schedule leaves out steps that a loss scale skips.
    if (count && *count <= *done)
      return SavedSteps{*count, schedule->path};
    return SavedSteps{*done, "trainer_state.json"};
  }
  // Accelerate steps a schedule as often as there are processes.
  if (!count || processes == 0 || *count % processes != 0)
    return std::nullopt;
  return SavedSteps{*count / processes,
                    schedule->path + ", " + std::to_string(*count) +
                        " steps on " + std::to_string(processes) +
                        (processes == 1 ? " process" : " processes")};
}

} // namespace accel::checkpoint
