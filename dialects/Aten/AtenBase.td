//===- AtenBase.td - The aten dialect ----------------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_BASE_TD
#define ACCEL_DIALECTS_ATEN_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Aten/AtenInterfaces.td"

def Aten_Dialect : Dialect {
  let name = "aten";
  let cppNamespace = "::accel::aten";
  let summary = "ATen operators over static shapes";
  let description = [{
    The computation level. An operation is named after the ATen overload it
    stands for, takes and returns builtin tensors with static shapes, and is
    pure. Interfaces give its result types, derivative, cost, and the call of
    ATen's schema that it becomes in a plan. Memory layout is no part of a
    type: `LayoutAnalysis` derives strides, and the exporter proves with it
    that each `view` is legal.

    Two operations have no ATen overload of their own and are replaced by
    `select-kernels` according to the device: `scaled_dot_product_attention`
    and `rms_norm`. `opaque` stands for any operator that is not modelled.
  }];
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Aten_Attr<string name, string attrMnemonic>
    : AttrDef<Aten_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Aten_SaveKind : I32EnumAttr<"SaveKind", "what becomes of a forward value", [
      I32EnumAttrCase<"Keep", 0, "keep">,
      I32EnumAttrCase<"Recompute", 1, "recompute">]> {
  let cppNamespace = "::accel::aten";
}

def Aten_SaveAttr : Aten_Attr<"Save", "save"> {
  let summary = "whether the backward may read an operation's results";
  let description = [{
    The checkpoint pass puts it on each forward operation of a joint function.
    `keep`: the results are saved where the backward needs them. `recompute`:
    the backward repeats the operation. Example:

    ```mlir
    %0 = aten.silu %x {aten.save = #aten.save<recompute, "pointwise">} : tensor<4xf32>
    ```
  }];
  let parameters = (ins EnumParameter<Aten_SaveKind>:$kind,
                        StringRefParameter<"why">:$reason);
  let assemblyFormat = "`<` $kind `,` $reason `>`";
}

def Aten_BindingKind : I32EnumAttr<"BindingKind", "what an argument or result is", [
      I32EnumAttrCase<"Input", 0, "input">,
      I32EnumAttrCase<"Param", 1, "param">,
      I32EnumAttrCase<"Saved", 2, "saved">,
      I32EnumAttrCase<"Output", 3, "output">,
      I32EnumAttrCase<"Tangent", 4, "tangent">,
      I32EnumAttrCase<"InputGrad", 5, "input_grad">,
      I32EnumAttrCase<"ParamGrad", 6, "param_grad">,
      I32EnumAttrCase<"Carry", 7, "carry">]> {
  let cppNamespace = "::accel::aten";
}

def Aten_BindingAttr : Aten_Attr<"Binding", "binding"> {
  let summary = "what an argument or result of a derived function stands for";
  let description = [{
    On arguments and results of joint, forward and backward functions.
    `input i` and `param i` count the original function's arguments without
    and with `sharding.param`; `output i` and `tangent i` its results; `saved
    i` the further results of the forward function; `input_grad i` and
    `param_grad i` the gradient of `input i` and `param i`. `carry i` is what
    segments that ran their backward before have added to the gradient of
    `input i`; `input_grad i` is the sum with this segment's. Example:

    ```mlir
    func.func private @L.backward(%x: tensor<4xf32> {aten.binding = #aten.binding<input 0>})
        -> (tensor<4xf32> {aten.binding = #aten.binding<input_grad 0>})
    ```
  }];
  let parameters = (ins EnumParameter<Aten_BindingKind>:$kind,
                        "int64_t":$index);
  let assemblyFormat = "`<` $kind $index `>`";
}

/// An integer or floating-point constant, as ATen's Scalar.
def Aten_Scalar : Attr<Or<[I64Attr.predicate, F64Attr.predicate]>,
                       "64-bit integer or floating-point attribute"> {
  let storageType = "::mlir::TypedAttr";
  let returnType = "::mlir::TypedAttr";
  let convertFromStorage = "$_self";
}

//===----------------------------------------------------------------------===//
// Types and operation classes
//===----------------------------------------------------------------------===//

def Aten_Float : AnyTypeOf<[F64, F32, F16, BF16]>;
def Aten_Tensor : StaticShapeTensorOf<[F64, F32, F16, BF16, I64, I32, I16, UI8, I1]>;
def Aten_FloatTensor : StaticShapeTensorOf<[F64, F32, F16, BF16]>;
def Aten_IntTensor : StaticShapeTensorOf<[I64, I32]>;
def Aten_BoolTensor : StaticShapeTensorOf<[I1]>;

/// `create` with the operation's arguments in their order (TypedBuilder.h).
def Aten_TypedBuilder : NativeOpTrait<"TypedBuilder"> {
  let cppNamespace = "::accel::aten";
}

/// An operation for the ATen call `aten` (see Schema.h for its grammar).
class Aten_Op<string mnemonic, string aten, string category,
              list<Trait> traits = []>
    : Op<Aten_Dialect, mnemonic,
         !listconcat([NoMemoryEffect, Aten_TypedBuilder,
                      DeclareOpInterfaceMethods<Aten_OpInterface,
                                                ["getSchema", "getCategory"]>],
                     traits)> {
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::ArrayRef<BuildArgument>":$arguments,
                             CArg<"::std::optional<::mlir::TypeRange>", "{}">:$results), [{
    TypedBuilder::build($_state, arguments, results);
  }]>];
  let extraClassDeclaration = [{
    static ::llvm::StringRef schema() { return "}] # aten # [{"; }
    static ::llvm::ArrayRef<::llvm::StringRef> argumentNames() {
      static const ::llvm::StringRef names[] = {}] #
      !interleave(!foreach(i, !range(!size(arguments)),
                           "\"" # !getdagname(arguments, i) # "\""), ", ") # [{};
      return names;
    }
    using TypedBuilder::build;
    using TypedBuilder::create;
  }];
  let extraClassDefinition = [{
    ::llvm::StringRef $cppClass::getSchema() { return schema(); }
    ::accel::aten::Category $cppClass::getCategory() {
      return ::accel::aten::Category::}] # category # [{;
    }
  }];
}

def Aten_Derivative : DeclareOpInterfaceMethods<Aten_DerivativeOpInterface>;
def Aten_OwnCost : DeclareOpInterfaceMethods<Aten_OpInterface, ["getCost"]>;
def Aten_OwnWorkspace
    : DeclareOpInterfaceMethods<Aten_OpInterface, ["getWorkspaceBytes"]>;
def Aten_OwnStrides
    : DeclareOpInterfaceMethods<Aten_OpInterface, ["getStrides"]>;

/// An operation of operands, then named attributes, then types.
class Aten_Plain<string mnemonic, string aten, string category, string what,
                 list<Trait> traits = []>
    : Aten_Op<mnemonic, aten, category,
              !listconcat([InferTypeOpAdaptor], traits)> {
  let summary = what;
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
}

#endif // ACCEL_DIALECTS_ATEN_BASE_TD
