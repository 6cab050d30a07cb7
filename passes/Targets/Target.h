//===- Target.h - The machines that plans are made for ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A target is a YAML file (docs: passes/Targets/data/h100-sxm-80gb.yaml) that
// says what one rank has: memory, rates of computation by dtype, links. The
// shipped ones are part of the library, and each of their figures has a source.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TARGETS_TARGET_H
#define ACCEL_PASSES_TARGETS_TARGET_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace accel {

enum class TargetKind { Cpu, Cuda };
/// "cpu", "cuda": as Plan::device.
const char *toString(TargetKind kind);

/// Rates of one dtype, per rank.
struct ComputeRate {
  double peakFlops = 0;        // FLOP/s of the datasheet: what MFU divides by
  double matmulEfficiency = 1; // attained by large matrix products
  double attentionEfficiency = 1; // attained by fused attention
  bool operator==(const ComputeRate &) const = default;
};

/// A way between ranks.
struct Link {
  double bytesPerSecond = 0; // attained, per direction and rank
  double latencySeconds = 0; // of a collective, whatever its size and ranks
  double hopSeconds = 0;     // of each step of a ring
  bool operator==(const Link &) const = default;
};

/// One figure as the file states it, for people.
struct TargetFigure {
  std::string key;    // dotted path: "memory.bandwidth"
  std::string value;  // as written
  std::string source; // empty: none given
  bool operator==(const TargetFigure &) const = default;
};

struct Target {
  std::string name;
  std::string description;
  TargetKind kind = TargetKind::Cpu;
  int64_t ranksPerNode = 1; // where the job does not say
  /// Bytes that one rank may use; none where the file cannot know (cpu).
  std::optional<int64_t> memoryBytes;
  /// Of these, what the framework's context, communicators and libraries take.
  int64_t contextBytes = 0;
  double memoryBytesPerSecond = 0; // attained, read and written together
  double allocatorOverhead = 0;    // idle bytes per byte of the peak
  int64_t allocatorGranularity = 1;
  std::map<plan::DType, ComputeRate> compute; // f32, bf16, f16
  double launchSeconds = 0;                   // of one operator
  Link insideNode, betweenNodes;
  /// The part of a collective that computation can hide; the rest is taken
  /// from the cores or multiprocessors that compute.
  double overlap = 1;
  std::string reduceScatter = "direct"; // or "all_to_all" (Step::algorithm)
  std::vector<TargetFigure> figures;    // in a fixed order

  /// The rates of `dtype`; of f32 where the file has none for it.
  const ComputeRate &rate(plan::DType dtype) const;
  /// FLOP/s that large matrix products attain.
  double flops(plan::DType dtype) const;
  /// FLOP/s that fused attention attains.
  double attentionFlops(plan::DType dtype) const;
  /// FLOP/s of the datasheet.
  double peakFlops(plan::DType dtype) const;
  /// What the allocator holds where tensors take `peakBytes`
  /// (Predicted::reservedBytes).
  int64_t reservedBytes(int64_t peakBytes) const;
};

/// The shipped targets, sorted.
std::vector<std::string> targetNames();

/// The text of a shipped target's file: what a person starts their own from.
std::optional<std::string> shippedTarget(const std::string &name);

/// A shipped target by name, or a file by path: what holds a '/' or ends in
/// .yaml or .yml is a path. On failure reports errors (unknown-target,
/// unknown-key, missing-key, invalid-value and those of the YAML reader) and
/// returns nothing.
std::optional<Target> loadTarget(const std::string &nameOrFile,
                                 DiagnosticEngine &engine);

/// The same from text; `file` is for messages.
std::optional<Target> parseTarget(const std::string &file,
                                  const std::string &text,
                                  DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_PASSES_TARGETS_TARGET_H
