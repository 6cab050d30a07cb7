//===- DialectTable.h - Operations by the ATen call they are ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each operation of the dialect says in its definition which call of ATen it
// becomes (dialects/Aten/Schema.h). Read backwards, that is how a call becomes
// an operation; so an operator that the dialect learns is imported at once.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_DIALECTTABLE_H
#define ACCEL_FRONTENDS_TORCHEXPORT_DIALECTTABLE_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace accel::torchexport {

struct DialectEntry {
  std::string operation; // "aten.sum.dim_IntList"
  /// One per argument of the signature: "%0", "%0*", "$dim", "none", "1".
  llvm::SmallVector<llvm::StringRef> arguments;
};

/// Operations for the call `name` ("aten::sum.dim_IntList"), by their names.
llvm::ArrayRef<DialectEntry> dialectEntries(mlir::MLIRContext *context,
                                            llvm::StringRef name);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_DIALECTTABLE_H
