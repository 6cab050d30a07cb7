//===- LossChunks.h - Into how many chunks a loss is cut --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_LOSSCHUNKS_H
#define ACCEL_FRONTENDS_JOB_LOSSCHUNKS_H

#include <cstdint>
#include <optional>

namespace accel {

/// The chunks of its tokens in which a cross-entropy is computed.
struct LossChunks {
  /// At least 1, which is not chunked. Nothing is "auto": as many as pay off
  /// under accel-run, as a fused kernel cuts it elsewhere.
  std::optional<int64_t> count;

  bool isAuto() const { return !count; }
  bool operator==(const LossChunks &) const = default;
};

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_LOSSCHUNKS_H
