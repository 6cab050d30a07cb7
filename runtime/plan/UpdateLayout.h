//===- UpdateLayout.h - What an update reads under flat shards --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A shard is flat and may begin in the middle of a row, so an update that reads
// more than elements needs what other ranks have of a parameter: sums over
// rows and columns. Here is where the states of such an optimizer stand, what
// its update takes while it runs and what ranks exchange; the runtime
// (runtime/optimizer), the verifier and both models of memory and time read it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_UPDATELAYOUT_H
#define ACCEL_RUNTIME_PLAN_UPDATELAYOUT_H

#include "runtime/plan/Optimizers.h"

namespace accel::plan {

/// A trained parameter of a unit.
struct UpdatedParameter {
  std::vector<int64_t> shape; // a rank's own
  int index = -1;             // Plan::parameters
  int64_t offset = 0;         // elements, in the unit's flat buffer
  int group = 0;              // of the optimizer
  int64_t numel() const;
};

/// What an update of a unit is laid out by.
struct UpdateShape {
  std::vector<UpdatedParameter> parameters;
  int64_t shard = 0; // elements that a rank keeps
  int64_t ranks = 1; // that share the unit
  DType storage = DType::F32;
};
/// Of a unit that is not trained: as if it were.
UpdateShape updateShape(const Plan &plan, const Unit &unit);

/// A parameter's part of a state that every rank has whole.
struct StatePart {
  int parameter = -1; // UpdateShape::parameters
  int64_t offset = 0; // elements
  int64_t numel = 0;
};

/// A state of a unit. One with a value for each element is sharded like the
/// parameters. Sums over rows and columns are small, and more than one rank
/// needs them: every rank has them whole, of all parameters one after the
/// other. So it has a state of few parameters (vectors) where that is less than
/// the shard; then those of a rank's own elements are up to date.
struct StateLayout {
  StateRule rule;
  DType dtype = DType::F32;
  bool sharded = true;
  int64_t elements = 0;         // that a rank has
  std::vector<StatePart> parts; // of the parameters that have it
};
/// Those that the unit has, in the description's order.
std::vector<StateLayout> stateLayouts(const OptimizerRule &rule,
                                      const UpdateShape &shape);
std::vector<StateLayout> stateLayouts(const Plan &plan, const Unit &unit);

/// Where sums of a factored update stand in its workspace.
struct FactoredLayout {
  struct Part {
    /// Matrices one after the other, [batch, rows, columns]; a vector has none.
    int64_t batch = 0, rows = 0, columns = 0;
    /// Elements of f32: batch * rows, batch * columns, and batch of them, the
    /// means of a state of rows; of a vector as many as it has.
    int64_t rowSums = 0, columnSums = 0, factors = 0;
  };
  std::vector<Part> parts; // by UpdateShape::parameters
  int64_t sums = 0;        // elements of f32 that are added up over ranks
  /// Bytes: an f64 for each parameter, and the largest part of a parameter that
  /// a rank can have in f32 (0 bytes where the storage is wider than 16 bits).
  int64_t squaresBegin = 0, scratchBegin = 0, scratchBytes = 0;
  int64_t bytes = 0;
};
FactoredLayout factoredLayout(const UpdateShape &shape);

/// Who computes with which matrix, and where in the workspace. A round's
/// matrices, as many as ranks and of similar size, are each sent to one rank,
/// whose results are sent back.
struct MatrixLayout {
  /// UpdateShape::parameters by the rank that has the matrix.
  std::vector<std::vector<int>> rounds;
  /// Bytes, of bf16: a rank's parts of a round, a matrix, another one, the
  /// Gram matrix of its shorter side, its polynomial, a norm.
  int64_t sentBegin = 0, matrixBegin = 0, nextBegin = 0, gramBegin = 0,
          polynomialBegin = 0, normBegin = 0;
  int64_t bytes = 0;
};
MatrixLayout matrixLayout(const UpdateShape &shape);

/// What ranks that share a unit exchange in its update: sums of all, or the
/// parts of matrices.
struct UpdateExchange {
  bool sums = true;
  double bytes = 0; // of one rank
  bool operator==(const UpdateExchange &) const = default;
};

/// What an update of a unit takes on one rank.
struct UpdateWork {
  int64_t workspaceBytes = 0; // while it runs
  double movedBytes = 0;      // read and written
  double flops = 0;           // of matmuls in bf16, by the slowest ranks
  std::vector<UpdateExchange> exchanges; // one after the other
};
UpdateWork updateWork(const OptimizerRule &rule, const UpdateShape &shape,
                      const std::string &device);

/// Elements [begin, begin + count) of matrices [batch, rows, columns] as
/// rectangles: the end of a row, whole rows, the start of a row.
struct Rectangle {
  int64_t offset = 0;                  // in the elements
  int64_t row = 0, rowCount = 0;       // of all matrices
  int64_t column = 0, columnCount = 0; // of all matrices
  bool operator==(const Rectangle &) const = default;
};
std::vector<Rectangle> rectangles(int64_t begin, int64_t count, int64_t rows,
                                  int64_t columns);

/// The states of a unit, as plan.json lists them.
std::vector<State> unitStates(const Plan &plan, const Unit &unit);
/// Bytes of all states of a unit on one rank, as they are allocated.
int64_t stateBytes(const Plan &plan, const Unit &unit);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_UPDATELAYOUT_H
