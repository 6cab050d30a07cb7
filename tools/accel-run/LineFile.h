//===- LineFile.h - A file of JSON lines that runs go on with ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_LINEFILE_H
#define ACCEL_TOOLS_ACCEL_RUN_LINEFILE_H

#include "tools/accel-run/LineLock.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace accel::run {

/// A log, or predictions: each line is an object with a step. A run that goes
/// on from a checkpoint keeps the lines of the steps before, and at no moment
/// is one of them not in the file. A pipe or a device is only written to.
class LineFile {
public:
  /// Without `doneSteps` the file begins anew; with it, the lines of so many
  /// steps stay, and others go. Throws FileError, and then nothing has changed.
  /// `lock` holds the file, also where another one takes its place.
  LineFile(const std::string &path, std::optional<int64_t> doneSteps,
           LineLock *lock = nullptr);
  ~LineFile() { close(); }
  LineFile(const LineFile &) = delete;
  LineFile &operator=(const LineFile &) = delete;

  /// Adds lines, also after close(); what is wrong, or "". Of lines that could
  /// not be written none is in the file, as far as it can be shortened.
  std::string append(const std::string &lines);
  /// Writes the last line anew, if there is one, as `change` has left it; what
  /// is wrong, or "". What is no regular file stays as it is.
  std::string
  amendLast(const std::function<void(nlohmann::ordered_json &)> &change);
  /// What is wrong with lines that were added before, or "".
  std::string close();

private:
  /// False with errno where it cannot be opened.
  bool open(int flags = 0);
  bool replaceFile(const std::string &text, std::string &error);
  std::string path;
  LineLock *lock;
  int file = -1;
};

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_LINEFILE_H
