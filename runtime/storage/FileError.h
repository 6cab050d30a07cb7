//===- FileError.h - What is wrong with a file ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_STORAGE_FILEERROR_H
#define ACCEL_RUNTIME_STORAGE_FILEERROR_H

#include <stdexcept>

namespace accel::run {

/// "path: No space left on device", or what else is wrong with a file.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// All ranks throw it alike: rank 0 says why.
struct AgreedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_STORAGE_FILEERROR_H
