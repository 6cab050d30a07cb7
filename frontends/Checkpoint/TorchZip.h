//===- TorchZip.h - Files as torch.save writes them -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_TORCHZIP_H
#define ACCEL_FRONTENDS_CHECKPOINT_TORCHZIP_H

#include "frontends/Checkpoint/Checkpoint.h"
#include "frontends/Checkpoint/FileIo.h"
#include "frontends/Checkpoint/PickleWriter.h"

#include <functional>
#include <vector>

namespace accel::checkpoint {

/// Takes bytes of a storage, in their order.
using TakeBytes = std::function<bool(std::string_view)>;

/// Bytes of a tensor, which `fill` gives.
struct TorchStorage {
  int64_t bytes = 0;
  std::function<bool(const TakeBytes &)> fill;
};

/// Writes a zip with a pickle and the storages "0", "1" and so on, as below.
std::optional<int64_t> writeTorchZip(File &file, int64_t at,
                                     const std::string &pickle,
                                     const std::vector<TorchStorage> &storages);

/// Writes a zip with a pickle and, where `bytes` is not negative, one storage
/// of so many bytes to `file` from `at` on: `fill` gives them. The number of
/// bytes that it takes; nothing where `fill` says so or, with errno, writing
/// fails.
std::optional<int64_t>
writeTorchZip(File &file, int64_t at, const std::string &pickle, int64_t bytes,
              const std::function<bool(const TakeBytes &)> &fill);

/// Writes a contiguous tensor that is the storage of this number.
void writeTensor(PickleWriter &out, const std::string &dtype,
                 const std::vector<int64_t> &shape, size_t storage);

/// The pickle of a contiguous tensor that is storage 0.
std::string pickleOfTensor(const std::string &dtype,
                           const std::vector<int64_t> &shape);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_TORCHZIP_H
