//===- WritePrograms.h - From segment calls to programs ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The core of `lower-to-schedule`: segment calls and units become
// schedule.programs, in the order that StepIssuer gives.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_WRITEPROGRAMS_H
#define ACCEL_PASSES_SCHEDULE_WRITEPROGRAMS_H

#include "passes/Export/ExportFunction.h"
#include "passes/Schedule/Graph.h"
#include "passes/Schedule/IssueStep.h"
#include "runtime/plan/Chunks.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include <functional>

namespace accel::schedule {

struct WriteOptions {
  std::vector<bool> reshardAfterForward; // by plan unit
  int64_t accumulation = 1;
  std::string reduceScatter = "direct"; // algorithm
  int stages = 1; // of a pipeline: each has programs of its own
  int chunks = 1; // of the model in each stage
  plan::ChunkLayout layout() const {
    return {stages, chunks, plan::scheduleOf(issue.splitBackward, chunks)};
  }
  IssueOptions issue;
};

/// What a call needs to know of a function.
struct Callee {
  /// A result that is not the gradient of a parameter.
  struct Result {
    plan::DType dtype = plan::DType::F32;
    std::vector<int64_t> shape;
    int64_t storageBytes = 0; // of what it is, or is a view of
    int sharesWith = -1;      // the first result of the same storage
  };
  std::string name;
  std::vector<Result> results;
  bool draws = false; // random numbers
};

/// The function of that name with these gradients.
using CalleeProvider = std::function<mlir::FailureOr<Callee>(
    const std::string &name, const std::vector<GradientMode> &gradients)>;

/// Appends the programs of an optimizer step and the forward-only "eval" to the
/// module. `layout` has the units and parameters of a plan. Programs record no
/// peaks yet. Emits an error and fails where the calls do not fit together.
mlir::LogicalResult writePrograms(mlir::ModuleOp module,
                                  const plan::Plan &layout, const Graph &graph,
                                  const WriteOptions &options,
                                  const CalleeProvider &callee);

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_WRITEPROGRAMS_H
