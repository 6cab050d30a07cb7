//===- Npy.h - NumPy array files --------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_DATA_NPY_H
#define ACCEL_RUNTIME_DATA_NPY_H

#include "runtime/data/TokenFile.h"

#include <string>

namespace accel::run {

/// Reads the header of a .npy file (format 1 to 3, C order, little-endian
/// integers of 1 to 8 bytes, booleans and floating-point numbers of 2 to 8). On
/// failure returns false with a sentence that starts with the path.
bool openNpy(const std::string &path, TokenFile &file, std::string &error);

} // namespace accel::run

#endif // ACCEL_RUNTIME_DATA_NPY_H
