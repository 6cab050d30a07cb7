//===- SampleOrder.h - What says which samples come when --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A run that continues reads on at the sample where its checkpoint stood. That
// is the next one only if data and order are those of the checkpoint, so
// state.json keeps what says them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_DATA_SAMPLEORDER_H
#define ACCEL_RUNTIME_DATA_SAMPLEORDER_H

#include "runtime/plan/Job.h"

#include <map>
#include <string>
#include <vector>

namespace accel::run {

/// By key of the job; a file by name and bytes, so that a folder may be moved.
using SampleOrder = std::map<std::string, std::string>;

/// `epochSamples`: of an epoch that ends with whole micro-batches on all ranks,
/// so that its length depends on both; 0 where epochs go on in one another.
SampleOrder sampleOrder(const plan::Job &job, const std::string &baseDir,
                        int64_t epochSamples);

/// What of it is files.
SampleOrder dataFiles(const plan::Data &data, const std::string &baseDir);

/// A sentence for each thing in which the checkpoint's order was another one;
/// none where `checkpoint` is empty, as it is where no order was recorded.
std::vector<std::string> differences(const SampleOrder &checkpoint,
                                     const SampleOrder &plan);

} // namespace accel::run

#endif // ACCEL_RUNTIME_DATA_SAMPLEORDER_H
