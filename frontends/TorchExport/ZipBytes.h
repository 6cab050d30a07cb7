//===- ZipBytes.h - What minizip reads a zip from ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// minizip reads through functions that it is given: here from a part of a file
// or from memory, never past its end.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_ZIPBYTES_H
#define ACCEL_FRONTENDS_TORCHEXPORT_ZIPBYTES_H

#include <cstdint>
#include <memory>
#include <minizip/ioapi.h>
#include <string>
#include <string_view>

namespace accel::torchexport {

class ZipBytes {
public:
  /// The `bytes` bytes from `begin` on of a file; a negative number of bytes
  /// is up to its end. Null, with `error`, where it cannot be read or is no
  /// regular file.
  static std::unique_ptr<ZipBytes> ofFile(const std::string &path,
                                          int64_t begin, int64_t bytes,
                                          std::string &error);
  /// Bytes in memory, which must outlive this.
  static std::unique_ptr<ZipBytes> ofMemory(std::string_view bytes);
  ~ZipBytes();

  /// The functions that read from here, for unzOpen2_64: this must outlive the
  /// archive that it opens.
  zlib_filefunc64_def functions();

  uint64_t length() const { return size; }
  /// Copies up to `bytes` bytes from `place` on; fewer at the end and after an
  /// error.
  uint64_t readFrom(uint64_t place, char *into, uint64_t bytes) {
    at = place;
    return read(into, bytes);
  }

private:
  ZipBytes() = default;
  /// Copies up to `bytes` bytes from where it stands; fewer at the end and
  /// after an error.
  uint64_t read(char *into, uint64_t bytes);
  /// Whether the window holds the byte where it stands, read if it did not.
  bool fill();

  int file = -1;
  uint64_t begin = 0;        // in the file
  uint64_t size = 0, at = 0; // from begin
  /// All of the memory, or a piece of the file: minizip reads headers byte by
  /// byte.
  std::string_view window;
  uint64_t windowAt = 0;
  std::string buffer; // of the file's window
  bool failed = false;
};

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_ZIPBYTES_H
