//===- TorchFile.h - Files of torch.save of many tensors --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_TORCHFILE_H
#define ACCEL_FRONTENDS_CHECKPOINT_TORCHFILE_H

#include "frontends/Checkpoint/OrderedReader.h"
#include "frontends/Checkpoint/TorchZip.h"

namespace accel::checkpoint {

/// A dictionary for torch.save as it is put together: `out` between the values,
/// tensors by the functions here.
class TorchFile {
public:
  /// Writes the dictionary's keys and values; `reader` is there until the file
  /// is written.
  using Make = std::function<void(TorchFile &, OrderedReader &reader)>;

  PickleWriter out;

  /// A tensor whose bytes `fill` will give.
  void tensor(const std::string &dtype, const std::vector<int64_t> &shape,
              int64_t bytes, std::function<bool(const TakeBytes &)> fill) {
    storages.push_back({bytes, std::move(fill)});
    again(dtype, shape);
  }
  /// A float32 of no dimensions.
  void number(float value) {
    tensor("float32", {}, sizeof value, [value](const TakeBytes &take) {
      return take({reinterpret_cast<const char *>(&value), sizeof value});
    });
  }
  /// The bytes of the last tensor once more.
  void again(const std::string &dtype, const std::vector<int64_t> &shape) {
    writeTensor(out, dtype, shape, storages.size() - 1);
  }

private:
  friend bool writeTorchFile(const std::string &path, int64_t folderBytes,
                             DiagnosticEngine &diagnostics, const Make &make);
  std::vector<TorchStorage> storages;
};

/// Writes the file `path`, which is not there yet; reports where that fails.
/// `folderBytes`: as of reportUnwritten.
bool writeTorchFile(const std::string &path, int64_t folderBytes,
                    DiagnosticEngine &diagnostics, const TorchFile::Make &make);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_TORCHFILE_H
