//===- TuneFixture.h - Small models to search over --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_TUNEFIXTURE_H
#define ACCEL_TEST_UNIT_TUNEFIXTURE_H

#include "passes/Tune/Search.h"

#include <random>

namespace accel::tune {

/// An embedding, `layers` layers of two blocks each, and a head.
StepModel tinyModel(int layers, int variants, std::mt19937 &random,
                    int64_t microBatch = 1);
/// FSDP with one unit a layer over `ranks` ranks.
Candidate tinyCandidate(const StepModel &model, int64_t ranks);

/// A plain simulation of sharded training that is nobody's executor: two
/// streams, one wire, bytes at the moments where they can be highest.
struct TinyMachine {
  double bytesPerSecond = 1e9, latencySeconds = 1e-4;
  double hostBytesPerSecond = 2e8;
  Evaluation evaluate(const StepModel &model, const Candidate &candidate) const;
};

} // namespace accel::tune

#endif // ACCEL_TEST_UNIT_TUNEFIXTURE_H
