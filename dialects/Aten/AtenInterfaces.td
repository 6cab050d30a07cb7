//===- AtenInterfaces.td - Interfaces of aten operations ---*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_INTERFACES_TD
#define ACCEL_DIALECTS_ATEN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Aten_OpInterface : OpInterface<"AtenOpInterface"> {
  let cppNamespace = "::accel::aten";
  let description = [{
    What a pass needs to know about any aten operation without naming it.
  }];
  let methods = [
    InterfaceMethod<[{
      The ATen call that the operation becomes, in the grammar of Schema.h:
      `aten::sum.dim_IntList(%0, $dim, $keepdim, none)`. Empty for an
      operation that a pass must replace first.
    }], "::llvm::StringRef", "getSchema", (ins)>,
    InterfaceMethod<"What kind of work it is.",
      "::accel::aten::Category", "getCategory", (ins)>,
    InterfaceMethod<[{
      Floating-point operations, and bytes read and written. By default one
      operation per result element (none for a view), and each operand and
      result touched once.
    }], "::accel::aten::Cost", "getCost", (ins), "", [{
      return ::accel::aten::defaultCost($_op);
    }]>,
    InterfaceMethod<[{
      Bytes that the operator allocates and frees inside, on `device` with one
      compute thread, beyond its results.
    }], "int64_t", "getWorkspaceBytes", (ins "::accel::aten::Device":$device),
      "", [{ return ::accel::aten::defaultWorkspaceBytes($_op, device); }]>,
    InterfaceMethod<[{
      Strides in elements of a result in memory, given those of the operands.
      By default TensorIterator's for pointwise operations, else row-major.
    }], "::accel::aten::Strides", "getStrides",
      (ins "::accel::aten::LayoutAnalysis &":$layout, "unsigned":$result),
      "", [{ return ::accel::aten::defaultStrides($_op, layout, result); }]>,
  ];
}

def Aten_DerivativeOpInterface : OpInterface<"DerivativeOpInterface"> {
  let cppNamespace = "::accel::aten";
  let description = [{
    The derivative rule, which emits the operators of PyTorch's own formula in
    the same order, so that gradients are equal to autograd's.
  }];
  let methods = [
    InterfaceMethod<[{
      Emits the gradients of the operands. `grads` holds a gradient per result
      (null where none flows), `needed` says which operands want one, and
      `operandGrads` (one per operand, null at entry) takes them; an operand
      may stay null if its gradient is zero. Fails with a diagnostic.
    }], "::llvm::LogicalResult", "buildBackward",
      (ins "::accel::aten::BackwardBuilder &":$builder,
           "::llvm::ArrayRef<::mlir::Value>":$grads,
           "::llvm::ArrayRef<bool>":$needed,
           "::llvm::MutableArrayRef<::mlir::Value>":$operandGrads)>,
  ];
}

#endif // ACCEL_DIALECTS_ATEN_INTERFACES_TD
