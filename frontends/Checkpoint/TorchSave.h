//===- TorchSave.h - What files of torch.save share -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_TORCHSAVE_H
#define ACCEL_FRONTENDS_CHECKPOINT_TORCHSAVE_H

#include "frontends/Checkpoint/Checkpoint.h"
#include "frontends/Checkpoint/Pickle.h"

#include <functional>

namespace accel::checkpoint {

/// Whether tensors in dictionaries need this "module name".
bool isSavedName(std::string_view name);

/// The data.pkl of a file; reports why there is none.
std::optional<std::string> readDataPickle(const std::string &path,
                                          DiagnosticEngine &diagnostics);

/// What `take` says of the same, parsed, of the names that tensors in
/// dictionaries need; false after a report of what is wrong with it. Its texts
/// are of the file's bytes, which are gone after that.
bool takeSavedPickle(const std::string &path, DiagnosticEngine &diagnostics,
                     const std::function<bool(const Pickle &)> &take);

/// Adds the tensors of the pickle, which the file `path` holds, to `part`.
bool takeSavedTensors(const Pickle &pickle, const std::string &path, Part &part,
                      DiagnosticEngine &diagnostics);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_TORCHSAVE_H
