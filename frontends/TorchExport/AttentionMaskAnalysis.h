//===- AttentionMaskAnalysis.h - Masks by position --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_ATTENTIONMASKANALYSIS_H
#define ACCEL_FRONTENDS_TORCHEXPORT_ATTENTIONMASKANALYSIS_H

#include "mlir/IR/Value.h"

#include <cstdint>
#include <limits>
#include <optional>

namespace accel::torchexport {

/// The keys that a query sees, by their positions alone: key j and query i
/// where -behind <= j - i <= ahead. Both are the last two dimensions.
struct BandedMask {
  static constexpr int64_t all = std::numeric_limits<int64_t>::max();
  int64_t ahead = all, behind = all;
  bool whole() const { return ahead == all && behind == all; }
  /// What attention calls causal, with or without a window.
  bool causal() const { return ahead == 0; }
  /// Keys that a query sees, itself the last; 0: all before it.
  int64_t window() const { return behind == all ? 0 : behind + 1; }
};

/// The band of a truth value that is computed from counted positions; with
/// `inverted`, where it is false. Nothing where it is no band.
std::optional<BandedMask> bandedMaskOf(mlir::Value seen, bool inverted = false);

/// What is added to scores: nothing, or `bias`, inside of a band, and what a
/// softmax makes 0 of outside.
struct AddedMask {
  mlir::Value bias;
  BandedMask band;
};
std::optional<AddedMask> addedMaskOf(mlir::Value mask);

/// Negative enough for a softmax to make 0 of it.
bool hides(mlir::Attribute number);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_ATTENTIONMASKANALYSIS_H
