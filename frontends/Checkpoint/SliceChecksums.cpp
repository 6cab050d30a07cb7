//===- SliceChecksums.cpp - Checksums of entries read in slices -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/SliceChecksums.h"

#include "frontends/Diagnostics/Diagnostics.h"

#include <zlib.h>

namespace accel::checkpoint {

uint32_t SliceChecksums::extend(uint32_t checksum, std::string_view bytes) {
  return uint32_t(crc32_z(
      checksum, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

bool SliceChecksums::verify(torchexport::Archive &archive,
                            std::string &error) const {
  for (const auto &[name, parts] : slices) {
    const torchexport::Archive::Entry &entry = archive.entries().at(name);
    uint32_t checksum = 0;
    auto read = [&](int64_t begin, int64_t end) {
      return begin == end || archive.stream(
                                 name, begin, end - begin,
                                 [&](std::string_view bytes) {
                                   checksum = extend(checksum, bytes);
                                   return true;
                                 },
                                 error);
    };
    int64_t at = 0;
    bool apart = true;
    for (const auto &[begin, slice] : parts) {
      apart &= begin >= at;
      at = begin + slice.bytes;
    }
    at = 0;
    for (const auto &[begin, slice] : parts) {
      if (!apart)
        break;
      if (!read(at, begin))
        return false;
      checksum = uint32_t(crc32_combine(checksum, slice.checksum, slice.bytes));
      at = begin + slice.bytes;
    }
    if (!read(at, entry.bytes))
      return false;
    if (checksum != entry.checksum) {
      error = "'" + printable(name) + "' is cut or damaged: CRC error";
      return false;
    }
  }
  return true;
}

} // namespace accel::checkpoint
