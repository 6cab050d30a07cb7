//===- InstructionKey.h - What makes two instructions the same --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operator, dtypes and shapes of its tensors, and its other arguments, as one
// line. accel-run measures an instruction once for each key, and targets hold
// what was measured by it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_INSTRUCTIONKEY_H
#define ACCEL_RUNTIME_PLAN_INSTRUCTIONKEY_H

#include "runtime/plan/Functions.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <set>
#include <string>

namespace accel::plan {

/// "f32x64x32"; "none" for the slot -1.
std::string typeText(const Function &function, int slot);

/// "aten::mm f32x64x32 f32x32x16": as in the file, without names of slots.
/// Printable ASCII without quotes and backslashes.
std::string instructionKey(const Function &function,
                           const Instruction &instruction);

/// "1 rank", "2 ranks": of all of a plan.
std::string ranksText(const Plan &plan);

/// "all_gather 2 ranks 12582912 bytes": of a collective of one node, with the
/// bytes of the whole buffer.
std::string collectiveKey(ProgramInstructionKind kind, int64_t ranks,
                          int64_t bytes);

/// "all_gather reduce_scatter 2 ranks", "1 rank": of steps whose ranks wait for
/// one another at such collectives. Nothing of pipelines, whose stages wait for
/// each other, and where functions exchange: no step of these is measured.
std::optional<std::string> overheadKey(const Plan &plan);

/// Bytes of each message that a micro-batch of a pipeline sends to another
/// stage; its key is that of a Send between 2 ranks.
std::set<int64_t> messageBytes(const Program &program);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_INSTRUCTIONKEY_H
