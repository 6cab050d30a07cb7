//===- NpyHeader.h - What a NumPy array file says of itself -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_NPYHEADER_H
#define ACCEL_RUNTIME_PLAN_NPYHEADER_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accel::plan {

/// The header of a .npy file (format 1 to 3, C order; numpy/lib/format.py).
struct NpyHeader {
  std::string descr;  // "<i4"
  int64_t offset = 0; // bytes, of the first element
  std::vector<int64_t> shape;
  int64_t count = 0; // elements
};

/// Reads a header at the begin of `bytes`. On failure says why in `error`.
std::optional<NpyHeader> parseNpyHeader(std::string_view bytes,
                                        std::string &error);
/// The same of a file; its elements are not looked at.
std::optional<NpyHeader> readNpyHeader(const std::string &path,
                                       std::string &error);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_NPYHEADER_H
