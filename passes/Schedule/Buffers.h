//===- Buffers.h - Whose buffer a value is ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_BUFFERS_H
#define ACCEL_PASSES_SCHEDULE_BUFFERS_H

#include "dialects/Schedule/Schedule.h"

#include <optional>

namespace accel::schedule {

/// A buffer of a unit.
struct UnitBuffer {
  mlir::StringAttr unit;
  Role role;
};

/// Nothing where `value` is an activation.
std::optional<UnitBuffer> unitBufferOf(mlir::Value value);

/// The unit that an operation of a program is about; null for calls, norms and
/// frees of activations.
mlir::StringAttr unitOf(mlir::Operation *op);

/// The start of a collective that `await` ends.
mlir::Operation *startOf(AwaitOp await);
/// The await of a start; null where nothing awaits it.
AwaitOp awaitOf(mlir::Operation *start);

/// Whether `op` starts a reduce-scatter or an all-reduce.
bool startsReduction(mlir::Operation *op);

inline int64_t bytesOf(mlir::Value buffer) {
  return mlir::cast<BufferType>(buffer.getType()).getBytes();
}
inline bool isActivation(mlir::Value buffer) {
  return static_cast<bool>(
      mlir::cast<BufferType>(buffer.getType()).getTensor());
}

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_BUFFERS_H
