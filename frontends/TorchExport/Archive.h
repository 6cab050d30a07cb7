//===- Archive.h - The zip that torch.export.save writes --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A .pt2 file is a zip whose entries stand under one folder, named after the
// file: archive_format, models/model.json, data/weights/weight_0, ... Names
// here are without that folder.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_ARCHIVE_H
#define ACCEL_FRONTENDS_TORCHEXPORT_ARCHIVE_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace accel::torchexport {

class ZipBytes;

class Archive {
public:
  struct Entry {
    uint64_t index = 0; // in the zip
    int64_t bytes = 0;  // uncompressed
    bool stored = false;
    uint32_t checksum = 0; // CRC-32 of the uncompressed bytes
  };

  /// Opens a file. Says in `error` why it cannot be read.
  static std::optional<Archive> open(const std::string &path,
                                     std::string &error);
  /// A zip that is the `bytes` bytes from `begin` on of a file.
  static std::optional<Archive> openRange(const std::string &path,
                                          int64_t begin, int64_t bytes,
                                          std::string &error);
  /// The same for bytes in memory, which must outlive the archive.
  static std::optional<Archive> openMemory(std::string_view bytes,
                                           std::string &error);
  /// An archive of these entries, which no zip holds: for tests.
  static Archive ofEntries(std::map<std::string, std::string> entries);
  Archive(Archive &&);
  Archive &operator=(Archive &&);
  ~Archive();

  /// The folder that all entries stand under.
  const std::string &root() const { return folder; }
  const std::map<std::string, Entry> &entries() const { return table; }
  bool has(const std::string &name) const { return table.count(name) != 0; }
  /// The bytes of an entry of at most `limit` bytes, checksum verified. Says in
  /// `error` what is wrong: missing, too large, compressed beyond belief, cut.
  std::optional<std::string> read(const std::string &name, int64_t limit,
                                  std::string &error);

  /// Gives `bytes` bytes of an entry, from `begin` on, to `sink` in pieces of
  /// at most 4 MiB, until it returns false. The checksum is verified where the
  /// whole entry is read. False, with `error`, where that fails.
  bool stream(const std::string &name, int64_t begin, int64_t bytes,
              const std::function<bool(std::string_view)> &sink,
              std::string &error);

private:
  struct Zip;
  Archive();
  static std::optional<Archive> openBytes(std::unique_ptr<ZipBytes> bytes,
                                          std::string &error);
  bool list(std::string &error);
  bool widen(uint64_t record, Entry &entry);
  std::unique_ptr<Zip> zip;
  std::string folder;
  std::map<std::string, Entry> table;
  std::map<std::string, std::string> given; // of ofEntries
};

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_ARCHIVE_H
