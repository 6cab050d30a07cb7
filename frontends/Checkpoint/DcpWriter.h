//===- DcpWriter.h - Folders for torch.distributed.checkpoint ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A folder that torch.distributed.checkpoint loads: __0_0.distcp with a file of
// torch.save for each tensor, whole, and each other value, and .metadata with
// their places.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_DCPWRITER_H
#define ACCEL_FRONTENDS_CHECKPOINT_DCPWRITER_H

#include "frontends/Checkpoint/PieceReader.h"

#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace accel::checkpoint {

/// A key of the dictionaries, or an index of the lists, around a value.
using DcpKey = std::variant<std::string, int64_t>;

struct DcpItem {
  std::vector<DcpKey> path;
  const Tensor *tensor = nullptr;
  /// Without a tensor: its bytes as float32, of no dimensions; else the pickle
  /// of another value.
  std::optional<float> number;
  std::string pickle;
};

/// Writes `items` to the folder, which is there. `done` hears of the bytes of
/// tensors as they are written. Reports and returns false where that fails.
/// `folderBytes`: as of reportUnwritten.
bool writeDcp(const std::vector<DcpItem> &items, const std::string &folder,
              int64_t folderBytes, const std::function<void(int64_t)> &done,
              DiagnosticEngine &diagnostics);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_DCPWRITER_H
