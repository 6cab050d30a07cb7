//===- HostQueue.h - What the host launches of a segment --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_HOSTQUEUE_H
#define ACCEL_PASSES_STEPMODEL_HOSTQUEUE_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// The kernels of one half of a segment, in order: the device runs what it is
/// given, and the host goes ahead of it but where it waits.
class HostQueue {
public:
  /// Counts an instruction among `ops` or `views` as its HostWork says;
  /// `device` is its seconds there.
  void add(const SegmentGraph &graph, int instruction, double device,
           const Target *target, int &ops, int &views);

  /// Seconds of a call of many in a row; 0 where the host never waits.
  double seconds(const Target *target) const;

private:
  struct Entry {
    double device = 0, host = 0; // seconds
    bool waits = false;
  };
  std::vector<Entry> entries;
};

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_HOSTQUEUE_H
