//===- Describe.h - Modules and parameters of a program ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_DESCRIBE_H
#define ACCEL_FRONTENDS_TORCHEXPORT_DESCRIBE_H

#include "frontends/HuggingFace/ModelInfo.h"
#include "frontends/TorchExport/Program.h"

namespace accel::torchexport {

/// The module tree and the parameters, tied ones once under their first name.
/// Without notes of the exporter matrices start normal with a deviation of
/// 0.02, biases at 0 and other vectors at 1.
huggingface::ModelInfo describe(const Program &program);

/// The name under which a parameter's tensor is described, by each of its
/// names.
std::unordered_map<std::string, std::string>
canonicalNames(const Program &program);

/// Dtype of most parameters.
plan::DType parameterDtype(const Program &program);

/// Rows and columns of the integer inputs as exported: [micro-batch, sequence];
/// 0 where they are open or there are none.
struct ExportedSizes {
  int64_t microBatch = 0, sequenceLength = 0;
  bool openBatch = false, openSequence = false;
  std::optional<int64_t> mostTokens; // of an open sequence, if it is bounded
};
ExportedSizes exportedSizes(const Program &program);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_DESCRIBE_H
