//===- Dropped.h - Attention that drops weights -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operations of accel-run's own for attention with dropout on CUDA, apart from
// the others because few files name them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_DROPPED_H
#define ACCEL_DIALECTS_ATEN_DROPPED_H

#include "dialects/Aten/Aten.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenDropped.h.inc"

namespace accel::aten {

/// Of such an operation on a rank's heads: the names of the mesh's axes that
/// shard them. The rank draws by its place along these.
inline constexpr llvm::StringLiteral ownKeyAttr = "aten.own_key";

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_DROPPED_H
