//===- Files.h - Writing that survives a crash ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_FILES_H
#define ACCEL_RUNTIME_CHECKPOINT_FILES_H

#include <cstdint>
#include <stdexcept>
#include <string>

namespace accel::plan {
class Sha256;
} // namespace accel::plan

namespace accel::run {

/// "path: No space left on device", or what else is wrong with a file.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A failure that all ranks have heard of.
struct AgreedFileError : FileError {
  using FileError::FileError;
};
/// Another rank throws the AgreedFileError that says why.
struct PeerFileError : FileError {
  using FileError::FileError;
};

/// An open file (no folder, pipe or device); every failure throws FileError
/// with the path.
class File {
public:
  enum class Mode { Read, Create, Write };
  File(const std::string &path, Mode mode);
  ~File();
  File(const File &) = delete;

  int64_t size() const;
  void readAt(int64_t offset, void *into, int64_t bytes) const;
  void writeAt(int64_t offset, const void *from, int64_t bytes);
  /// From now on `digest` is given what is written; then writes must follow
  /// one another from the file's beginning.
  void digestInto(plan::Sha256 &digest) { this->digest = &digest; }
  /// Makes room now, so that a full disk shows before data is written.
  void reserve(int64_t bytes);
  /// Data is on the disk when this returns; a delayed error throws.
  void sync();
  const std::string &path() const { return name; }

private:
  std::string name;
  int fd = -1;
  plan::Sha256 *digest = nullptr;
  int64_t digested = 0; // bytes
};

/// Makes a folder's entries (new files, renames) durable.
void syncFolder(const std::string &path);
/// Renames and makes it durable; `to` must not exist.
void renameDurably(const std::string &from, const std::string &to);
/// Puts folder `from` in the place of `to` and makes it durable. At no moment
/// is there none: both are swapped where the file system can. What stood there
/// is then `from`, or `aside` on file systems that cannot swap, until the
/// caller removes it.
void replaceFolder(const std::string &from, const std::string &to,
                   const std::string &aside);
void writeTextDurably(const std::string &path, const std::string &text);
void makeFolders(const std::string &path);
/// Removes a folder with all in it; what cannot be removed stays.
void removeQuietly(const std::string &path) noexcept;

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_FILES_H
