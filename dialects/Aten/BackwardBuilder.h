//===- BackwardBuilder.h - What derivative rules build with -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_BACKWARDBUILDER_H
#define ACCEL_DIALECTS_ATEN_BACKWARDBUILDER_H

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Layout.h"

namespace accel::aten {

/// Emits gradient operators at one place, under the location of the forward
/// operation, and folds what autograd would undo at once (t of t).
class BackwardBuilder {
public:
  BackwardBuilder(mlir::OpBuilder &builder, LayoutAnalysis &layout)
      : builder(builder), layout(layout), loc(builder.getUnknownLoc()) {}

  void setLoc(mlir::Location location) { loc = location; }
  mlir::Location getLoc() const { return loc; }
  LayoutAnalysis &getLayout() { return layout; }
  mlir::OpBuilder &getBuilder() { return builder; }

  template <typename OpT, typename... Args> mlir::Value create(Args &&...args) {
    return OpT::create(builder, loc, std::forward<Args>(args)...)->getResult(0);
  }
  template <typename OpT, typename... Args> OpT createOp(Args &&...args) {
    return OpT::create(builder, loc, std::forward<Args>(args)...);
  }

  /// The transposed matrix; t of t is the matrix itself.
  mlir::Value t(mlir::Value value);
  /// `value` in another shape: a view where its layout allows, else a view of
  /// a copy (Tensor.reshape).
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// `grad`, summed over the dimensions that broadcasting added, in the
  /// element type of `type` (what autograd's engine does to each gradient).
  mlir::Value sumTo(mlir::Value grad, mlir::Type type);
  /// `value`, a reduction's result or its gradient, with the reduced dimensions
  /// back as size 1.
  mlir::Value restoreDims(mlir::Value value, llvm::ArrayRef<int64_t> dims,
                          bool keepdim);
  /// Zeros (or another number) of a type.
  mlir::Value full(mlir::Type type, double number = 0.0);
  /// A matmul's factors are laid out by columns.
  bool isColumnMajor(mlir::Value matrix);

private:
  mlir::OpBuilder &builder;
  LayoutAnalysis &layout;
  mlir::Location loc;
};

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_BACKWARDBUILDER_H
