//===- AtenRandom.td - Operators that draw numbers ---------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_RANDOM_TD
#define ACCEL_DIALECTS_ATEN_RANDOM_TD

include "dialects/Aten/AtenBase.td"

def Aten_DropoutOp
    : Aten_Op<"dropout", "accel::dropout(%0, $p, @key)", "Pointwise",
              [SameOperandsAndResultType, Aten_Derivative, Aten_OwnCost,
               Aten_OwnWorkspace]> {
  let summary = "zero with probability p, else x / (1 - p)";
  let description = [{
    Which elements stay is a function of their position, of `key`, and of what
    the runtime knows where it runs the call: the job's seed, the micro-batch,
    and the number of the call in the graph. So the operation is pure, each
    repetition draws the same, and its derivative is itself on the gradient:
    no mask is kept. Two operations of a function that draw for themselves have
    different keys.

    ```mlir
    %0 = aten.dropout %x, 1.0e-01 key 3 : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, F64Attr:$p, I64Attr:$key);
  let results = (outs Aten_FloatTensor:$result);
  let assemblyFormat = "$self `,` $p `key` $key attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Aten_NativeDropoutOp
    : Aten_Op<"native_dropout", "aten::native_dropout(%0, $p, true)",
              "Pointwise", [InferTypeOpAdaptor, Aten_Derivative]> {
  let summary = "dropout as PyTorch runs it, which keeps its mask";
  let description = [{
    For the models of eager executors alone. The mask is i1 on CUDA; on CPUs
    PyTorch keeps its noise, 0 or 1 / (1 - p), in the dtype of the input.

    ```mlir
    %0, %1 = aten.native_dropout %x, 1.0e-01 mask i1 : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi1>)
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$self, F64Attr:$p, TypeAttr:$mask_type);
  let results = (outs Aten_FloatTensor:$result, Aten_Tensor:$mask);
  let assemblyFormat = [{
    $self `,` $p `mask` $mask_type attr-dict `:` functional-type(operands, results)
  }];
}

def Aten_NativeDropoutBackwardOp
    : Aten_Op<"native_dropout_backward",
              "aten::native_dropout_backward(%0, %1, $scale)", "Pointwise",
              [InferTypeOpAdaptor, Aten_OwnWorkspace]> {
  let summary = "gradient of native_dropout";
  let description = [{
    ```mlir
    %0 = aten.native_dropout_backward %grad, %mask, 1.25 : (tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins Aten_FloatTensor:$grad_output, Aten_Tensor:$mask,
                       F64Attr:$scale);
  let results = (outs Aten_FloatTensor:$grad_input);
  let assemblyFormat = [{
    $grad_output `,` $mask `,` $scale attr-dict `:` functional-type(operands, results)
  }];
}

#endif // ACCEL_DIALECTS_ATEN_RANDOM_TD
