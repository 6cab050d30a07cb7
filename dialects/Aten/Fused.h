//===- Fused.h - Kernels of libraries and compilers -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operations that are no operators of ATen: what Liger Kernel, flash-attn and
// torch.compile launch in their place. Frameworks that accel-opt predicts run
// them; accel-run does not, so that no plan holds one.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_FUSED_H
#define ACCEL_DIALECTS_ATEN_FUSED_H

#include "dialects/Aten/Aten.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenFused.h.inc"

#endif // ACCEL_DIALECTS_ATEN_FUSED_H
