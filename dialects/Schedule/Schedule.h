//===- Schedule.h - The schedule dialect ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SCHEDULE_SCHEDULE_H
#define ACCEL_DIALECTS_SCHEDULE_SCHEDULE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Schedule/ScheduleDialect.h.inc"
#include "dialects/Schedule/ScheduleEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Schedule/ScheduleTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Schedule/ScheduleAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Schedule/ScheduleOps.h.inc"

namespace accel::schedule {
/// On a function's result that is a parameter's gradient: a DestinationAttr.
constexpr llvm::StringLiteral destinationAttr = "schedule.destination";
/// On a collective of a function that is awaited later: why, a StringAttr.
constexpr llvm::StringLiteral startAttr = "schedule.start";
/// On a program of a pipeline: the stage whose ranks run it, an IntegerAttr.
constexpr llvm::StringLiteral stageAttr = "schedule.stage";
/// And of which of the stage's chunks, where that is not the first.
constexpr llvm::StringLiteral chunkAttr = "schedule.chunk";
} // namespace accel::schedule

#endif // ACCEL_DIALECTS_SCHEDULE_SCHEDULE_H
