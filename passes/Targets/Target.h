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

/// Rates of one dtype, per rank. The efficiencies are of large operators;
/// passes/Cost makes curves over shapes of them. Every "half" is a size at
/// which half of the efficiency is attained, and 0 stands for a flat curve.
struct ComputeRate {
  double peakFlops = 0;        // FLOP/s of the datasheet: what MFU divides by
  double matmulEfficiency = 1; // attained by large matmuls
  double attentionEfficiency = 1;         // attained by fused attention
  double attentionBackwardEfficiency = 0; // 0: as forward
  double halfDepth = 0;           // of a matmul: elements of its inner size
  double attentionHalfLength = 0; // tokens of a sequence
  double attentionHalfHead = 0;   // elements of a head
  /// The same of cuDNN's attention; 0: as other attention.
  double cudnnEfficiency = 0, cudnnBackwardEfficiency = 0, cudnnHalfHead = 0;
  /// Attained by large matmuls of cuBLAS since CUDA 12.6, where
  /// `matmulEfficiency` is of trainers that ran earlier ones; 0: as those.
  double libraryMatmulEfficiency = 0;
  bool operator==(const ComputeRate &) const = default;
};

/// A second protocol of a link for short messages: it starts faster and is
/// slower. None where the bandwidth is 0.
struct ShortMessages {
  double bytesPerSecond = 0;
  double latencySeconds = 0;
  double hopSeconds = 0;
  bool operator==(const ShortMessages &) const = default;
};

/// Sums that a node's switch makes (NVLink SHARP, NCCL's algorithm NVLS).
struct SwitchReduction {
  double efficiency = 0;     // of Link::bytesPerSecond; 0: there is none
  double latencySeconds = 0; // of a collective, whatever its size and ranks
  bool operator==(const SwitchReduction &) const = default;
};

/// A way between ranks.
struct Link {
  double bytesPerSecond = 0; // attained, per direction and rank
  double latencySeconds = 0; // of a collective, whatever its size and ranks
  double hopSeconds = 0;     // of each step of a ring
  double treeHopSeconds = 0; // of each level of a tree; 0: no trees
  ShortMessages shortMessages;
  SwitchReduction switchReduction; // inside nodes
  bool operator==(const Link &) const = default;
};

/// The host beside a device: what is offloaded goes there.
struct Host {
  double bytesPerSecond = 0; // of one device, each way, pinned; 0: not stated
  double latencySeconds = 0; // of one copy
  double updateBytesPerSecond = 0; // of an optimizer step on the host, per rank
  int64_t memoryBytes = 0;         // per rank; 0: not stated
  bool operator==(const Host &) const = default;
};

/// The drive of a machine, where states may wait; per rank.
struct Drive {
  double readBytesPerSecond = 0, writeBytesPerSecond = 0; // 0: not stated
  bool operator==(const Drive &) const = default;
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
  /// The same of norms, softmax and other reductions; 0: as any operator.
  double reductionBytesPerSecond = 0;
  /// The same of fused kernels of Transformer Engine; 0: as any operator.
  double libraryBytesPerSecond = 0;
  double memoryHalfBytes = 0;   // moved by an operator at half the bandwidth
  double allocatorOverhead = 0; // idle bytes per byte of the peak
  int64_t allocatorGranularity = 1;
  std::map<plan::DType, ComputeRate> compute; // f32, bf16, f16
  /// f32 matmuls in TF32 (torch.backends.cuda.matmul.allow_tf32), and
  /// matmuls of operands of 8 and 4 bits, where the device has them.
  std::optional<ComputeRate> tf32, fp8, fp4;
  /// Multiprocessors that the tiles of a matmul are dealt to; 0: matmuls
  /// have no waves.
  int64_t multiprocessors = 0;
  /// CUDA compute capability, as 9.0 for Hopper; 0: the device has none.
  double capability = 0;
  double launchSeconds = 0; // of one operator, on the device
  /// Of one operator in an eager framework, on the CPU that launches it; the
  /// device waits where it is faster. 0: not stated.
  double dispatchSeconds = 0;
  Link insideNode, betweenNodes;
  Host host;
  Drive drive;
  /// The part of a collective that computation can hide; the rest is taken
  /// from the cores or multiprocessors that compute.
  double overlap = 1;
  std::string reduceScatter =
      "direct"; // or "all_to_all" (ProgramInstruction::algorithm)
  /// Seconds of operators by plan::instructionKey, that accel-run --fit has
  /// measured; the rates above are for all others.
  std::map<std::string, double> measured;
  /// The same of collectives that nothing else is done beside, by
  /// plan::collectiveKey.
  std::map<std::string, double> measuredCollectives;
  /// What a step takes beyond its operators, as a part of their seconds, by
  /// plan::overheadKey: ranks that wait for one another, caches that others
  /// emptied.
  std::map<std::string, double> measuredOverheads;
  /// Seconds of one byte that updates, norms and copies before gathers move, by
  /// plan::MovedBytes::key; the memory's bandwidth is for all others.
  std::map<std::string, double> measuredMoves;
  std::vector<TargetFigure> figures; // in a fixed order

  /// The rates of `dtype`; of f32 where the file has none for it.
  const ComputeRate &rate(plan::DType dtype) const;
  /// FLOP/s that large matmuls attain.
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
