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

#endif // ACCEL_DIALECTS_ATEN_DROPPED_H
