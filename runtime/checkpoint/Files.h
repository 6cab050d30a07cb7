//===- Files.h - Writing that survives a crash ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_FILES_H
#define ACCEL_RUNTIME_CHECKPOINT_FILES_H

#include "runtime/storage/FileError.h"

#include <cstdint>
#include <string>

namespace accel::plan {
class Sha256;
} // namespace accel::plan

namespace accel::run {

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
/// The same; false where they are on different file systems, or the folder is
/// of a lower layer of an overlay.
bool tryRename(const std::string &from, const std::string &to);
/// The file of a folder by which it counts: one without is not complete, or,
/// where it says who has written the folder, not to be touched.
struct FolderMark {
  std::string file;
  enum class Says { Complete, Owner } says;
};
/// renameDurably of a folder, also of one that an overlay file system cannot
/// rename because a layer below has it: it is copied, and then removed. After
/// a crash one of both is complete: a mark that says so is copied last and
/// removed first, and that of the owner is there as long as any file is.
void moveFolder(const std::string &from, const std::string &to,
                const FolderMark &mark);
/// Removes a folder that cannot be renamed, its mark as moveFolder does.
void removeInPlace(const std::string &folder, const FolderMark &mark);
/// Puts folder `from` in the place of `to` and makes it durable. At no moment
/// is there none: both are swapped where the file system can. What stood there
/// is then `from`, or `aside` on file systems that cannot swap, until the
/// caller removes it.
void replaceFolder(const std::string &from, const std::string &to,
                   const std::string &aside, const FolderMark &mark);
/// 64 hexadecimal digits.
std::string sha256Of(const File &file);
void writeTextDurably(const std::string &path, const std::string &text);
void makeFolders(const std::string &path);
/// Removes a folder with all in it; what cannot be removed stays.
void removeQuietly(const std::string &path) noexcept;

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_FILES_H
