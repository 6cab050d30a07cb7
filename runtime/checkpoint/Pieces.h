//===- Pieces.h - Parameters inside of flat shards --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_PIECES_H
#define ACCEL_RUNTIME_CHECKPOINT_PIECES_H

#include "runtime/checkpoint/Files.h"
#include "runtime/execute/UnitStorage.h"
#include "runtime/plan/Plan.h"

#include <functional>
#include <vector>

namespace accel::run {

class Mesh;

/// Elements [begin, end) of a parameter, counted in its global shape, stand at
/// `offset` of a flat shard. Of a parameter that is split over an axis a rank
/// has many such runs: rows of each of its columns' parts.
struct Piece {
  int parameter = -1;
  int64_t begin = 0, end = 0;
  int64_t offset = 0;
};
/// What elements [from, to) of the unit's flat buffer hold on the rank at
/// `mesh`, by offset, which counts from `from`.
std::vector<Piece> piecesOf(const plan::Plan &plan, const plan::Unit &unit,
                            int64_t from, int64_t to, const Mesh &mesh);
/// What the rank's shard of the unit holds.
std::vector<Piece> piecesOf(const plan::Plan &plan, const UnitStorage &unit,
                            const Mesh &mesh);

/// The axes whose ranks hold other parts of the unit's parameters, beside those
/// that shard its flat buffer: those inside of functions (tp), and ep of
/// experts that it shares.
std::vector<std::string> axesOfParts(const plan::Plan &plan,
                                     const plan::Unit &unit);

/// A state that not all parameters have, or not with their shape, is stored
/// with a layout of its own.
bool hasOwnLayout(const plan::StateLayout &state);
/// The shape of a parameter's state.
std::vector<int64_t> stateShape(const plan::StateLayout &state,
                                const plan::Parameter &parameter);
/// What this rank has of state `index` of the unit, which has its own layout:
/// elements of `stateShape`. Sums over rows and columns are whole on each rank.
std::vector<Piece> piecesOfState(const plan::Plan &plan,
                                 const UnitStorage &unit, int index,
                                 const Mesh &mesh);

/// Exactly one rank of those with the same shard writes a unit that it holds,
/// of the stages that have its parameters one of the first, and of a unit's
/// parameters those that no other rank of the axes inside of functions (tp)
/// writes.
bool writesUnit(const plan::Plan &plan, const plan::Unit &unit,
                const Mesh &mesh);
bool writesParameter(const plan::Plan &plan, const plan::Parameter &parameter,
                     const Mesh &mesh);

/// Copies elements [begin, begin + count) of `flat` to `file` as `dtype`, and
/// back; a few MiB at a time, in memory that the allocator does not count.
void writeElements(File &file, int64_t fileOffset, plan::DType dtype,
                   const at::Tensor &flat, int64_t begin, int64_t count);
void readElements(const File &file, int64_t fileOffset, plan::DType dtype,
                  const at::Tensor &flat, int64_t begin, int64_t count);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_PIECES_H
