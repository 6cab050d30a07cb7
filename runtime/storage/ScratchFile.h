//===- ScratchFile.h - A rank's file for states -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_STORAGE_SCRATCHFILE_H
#define ACCEL_RUNTIME_STORAGE_SCRATCHFILE_H

#include <cstdint>
#include <string>

namespace accel::run {

/// A file that no folder names: it is removed as soon as it is open, so that
/// its room is free again however the process ends, and two jobs in a folder
/// never meet. All of its room is taken at once, and reads as zeros.
class ScratchFile {
public:
  /// Makes `folder` where it is missing. Throws FileError, which says whether
  /// there is too little room.
  ScratchFile(const std::string &folder, int rank, int64_t bytes);
  /// One that is open, for tests of what fails; `name` is for messages.
  ScratchFile(int descriptor, std::string name)
      : name(std::move(name)), fd(descriptor) {}
  ~ScratchFile();
  ScratchFile(const ScratchFile &) = delete;
  ScratchFile &operator=(const ScratchFile &) = delete;

  int descriptor() const { return fd; }
  /// Reads and writes pass the system's cache: memory, places and sizes are
  /// multiples of plan::diskAlignment.
  bool isDirect() const { return direct; }
  void leaveDirect();
  /// What the file system has for it.
  int64_t bytes() const;
  /// For messages: the folder's path, and whose it is.
  const std::string &path() const { return name; }

private:
  void reserve(const std::string &folder, int64_t bytes);
  void tryDirect();

  std::string name;
  int fd = -1;
  bool direct = false;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_STORAGE_SCRATCHFILE_H
