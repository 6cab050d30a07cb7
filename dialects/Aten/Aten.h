//===- Aten.h - The aten dialect --------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_ATEN_H
#define ACCEL_DIALECTS_ATEN_ATEN_H

#include "dialects/Aten/AtenBase.h"
#include "dialects/Aten/TypedBuilder.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Aten/AtenDialect.h.inc"
#include "dialects/Aten/AtenEnums.h.inc"
#include "dialects/Aten/AtenInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Aten/AtenAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Aten/AtenOps.h.inc"

#endif // ACCEL_DIALECTS_ATEN_ATEN_H
