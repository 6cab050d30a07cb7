//===- SliceChecksums.h - Checksums of entries read in slices ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A zip has one CRC-32 for an entry. Where an entry is read slice by slice, in
// any order, the checksums of slices make up that of the whole, so that no byte
// is read twice but those that no slice holds.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_SLICECHECKSUMS_H
#define ACCEL_FRONTENDS_CHECKPOINT_SLICECHECKSUMS_H

#include "frontends/TorchExport/Archive.h"

#include <map>
#include <string>

namespace accel::checkpoint {

/// The slices of the entries of one zip.
class SliceChecksums {
public:
  /// CRC-32 of bytes that follow those of `checksum`.
  static uint32_t extend(uint32_t checksum, std::string_view bytes);

  void add(const std::string &entry, int64_t begin, int64_t bytes,
           uint32_t checksum) {
    if (bytes > 0)
      slices[entry].insert_or_assign(begin, Slice{bytes, checksum});
  }

  /// Whether each entry is what its zip says. Reads what no slice holds, and
  /// the whole of an entry whose slices overlap. False, with `error`.
  bool verify(torchexport::Archive &archive, std::string &error) const;

private:
  struct Slice {
    int64_t bytes;
    uint32_t checksum;
  };
  std::map<std::string, std::map<int64_t, Slice>> slices;
};

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_SLICECHECKSUMS_H
