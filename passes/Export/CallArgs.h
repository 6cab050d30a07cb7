//===- CallArgs.h - Arguments of ATen calls in a plan -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXPORT_CALLARGS_H
#define ACCEL_PASSES_EXPORT_CALLARGS_H

#include "dialects/Aten/Schema.h"
#include "runtime/plan/Operands.h"
#include "runtime/plan/Plan.h"

namespace accel {

using plan::tensorArg;
plan::Arg intArg(int64_t value);
plan::Arg floatArg(double value);
plan::Arg boolArg(bool value);
plan::Arg intsArg(llvm::ArrayRef<int64_t> values);
plan::Arg typeArg(plan::DType dtype);
plan::Arg textArg(llvm::StringRef text);

/// The arguments of `call`, with `slotOf` its tensors' slots; nullopt where a
/// constant has no counterpart in a plan.
std::optional<std::vector<plan::Arg>>
convertArgs(const aten::Call &call,
            llvm::function_ref<int(mlir::Value)> slotOf);

/// The arguments of `op`, an operation of the sharding dialect that ranks
/// exchange something by (runtime/plan/Exchanges.h); nullopt for any other.
std::optional<std::vector<plan::Arg>>
exchangeArgs(mlir::Operation *op, llvm::function_ref<int(mlir::Value)> slotOf);

} // namespace accel

#endif // ACCEL_PASSES_EXPORT_CALLARGS_H
