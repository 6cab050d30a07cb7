//===- AccelerateTable.h - What accelerate estimate-memory says -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The figures of `accelerate estimate-memory` as they are, right or wrong:
// accelerate/commands/estimate.py and calculate_maximum_sizes of
// accelerate/utils/modeling.py, version 1.15.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ESTIMATE_ACCELERATETABLE_H
#define ACCEL_FRONTENDS_ESTIMATE_ACCELERATETABLE_H

#include "frontends/ModuleTree/ModuleTree.h"

#include <string>
#include <vector>

namespace accel::estimate {

enum class Dtype { Float32, Float16, Int8, Int4 };
const char *toString(Dtype dtype); // "float32"
std::optional<Dtype> parseDtype(const std::string &name);

/// Bytes with every parameter in float32, tied ones as often as they are named,
/// and buffers as they are. The tree is that of a model in float32.
struct ModelSizes {
  int64_t total = 0;
  /// The largest module without children, or whose class FSDP must not split.
  int64_t largestLayer = 0;
  std::vector<std::string> largestLayers; // FQNs of that size
};
ModelSizes modelSizes(const ModuleTree &tree);

/// One row. Bytes may be fractions: int4 is an eighth of float32.
struct Row {
  Dtype dtype;
  double largestLayer = 0, total = 0;
  /// "Training using Adam"; nothing is "N/A".
  std::optional<int64_t> training;
};
Row row(const ModelSizes &sizes, Dtype dtype);

/// "7.49 GB", as Python writes the number; `whole` numbers have no fraction
/// while they are bytes.
std::string convertBytes(double bytes, bool whole);

/// The table that Accelerate prints, with a final line break. `model` is what
/// stands on the command line.
std::string table(const std::string &model, const std::vector<Row> &rows);

} // namespace accel::estimate

#endif // ACCEL_FRONTENDS_ESTIMATE_ACCELERATETABLE_H
