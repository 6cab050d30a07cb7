//===- Schema.h - An operation as a call of ATen ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// How an operation becomes a call is one string in its ODS definition:
//
//   aten::sum.dim_IntList(%0, $dim, $keepdim, none)
//
//   %i     operand group i of the definition, a missing optional as none
//   %i*    the same as a list of tensors
//   %i*a   the same, each at the position that the list attribute `a` has for
//          it, the other positions none
//   %i?    operand i, none where the operation has fewer operands
//   $name  the attribute of that name, an absent optional as none
//   @name  the key of that name, by which a random operator draws
//   #name  the sequence length (dimension 2) of the operand of that name;
//          #name.1: dimension 1
//   none, true, false, 3, 1.0, [true, false], [1, 2]: as written
//
// `-> 9` behind it: ATen returns nine values, of which the operation's results
// are the first. `-> 3 by a`: of three values, the operation's results are
// those that the attribute `a`, a list of truth values, asks for.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_SCHEMA_H
#define ACCEL_DIALECTS_ATEN_SCHEMA_H

#include "mlir/IR/Operation.h"

namespace accel::aten {

/// One argument: tensors, or a constant, or neither (none). In a list a null
/// value is a missing tensor. A key is an integer constant that the runtime
/// mixes with the seed, micro-batch and call.
struct CallArg {
  enum class Kind { None, Tensor, Tensors, Constant, Key } kind = Kind::None;
  llvm::SmallVector<mlir::Value, 1> tensors;
  mlir::Attribute constant;
};

struct Call {
  std::string name; // "aten::sum.dim_IntList"
  llvm::SmallVector<CallArg> args;
  unsigned numResults = 0;               // that ATen returns
  llvm::SmallVector<unsigned> positions; // of the operation's results in them
};

/// The call that `op` becomes. Fails with a diagnostic for an operation that
/// must be replaced first (`type_as`, `rms_norm`).
llvm::FailureOr<Call> buildCall(mlir::Operation *op);

/// The module path of a location ("model.layers.*.mlp"); empty where it has
/// none.
std::string modulePath(mlir::Location loc);

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_SCHEMA_H
