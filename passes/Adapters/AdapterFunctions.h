//===- AdapterFunctions.h - Adapters in autograd functions ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_ADAPTERS_ADAPTERFUNCTIONS_H
#define ACCEL_PASSES_ADAPTERS_ADAPTERFUNCTIONS_H

#include "passes/Adapters/AdaptedTree.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// A matmul with the weight of a linear layer that has a LoRA.
struct AdaptedMatmul {
  std::string owner; // relative path of the layer
  AdaptedTree::Lora lora;
  mlir::Operation *product = nullptr; // aten.mm or aten.addmm
  /// Its input, [T, in], of which adapters before may have made another value.
  mlir::Value rows() const;
  mlir::BlockArgument weight;
  mlir::BlockArgument down, up;  // A [rank, in], B [out, rank]
  mlir::BlockArgument magnitude; // [out] of DoRA, else null
};

/// Computes the layers of `all` that make up a module of those which `asked`
/// names in one operation each, as axolotl's autograd functions do
/// (dialects/Aten/AtenLora.td), and returns the other ones. A module counts
/// where all its layers have a LoRA without DoRA, and its MLP where the
/// activation is SiLU or GELU (axolotl/monkeypatch/lora_kernels.py,
/// apply_lora_kernel_patches). `nextKey` gives keys for random operators.
llvm::SmallVector<AdaptedMatmul>
computeInFunctions(mlir::func::FuncOp function,
                   llvm::ArrayRef<AdaptedMatmul> all,
                   const AdapterConfig::Functions &asked,
                   llvm::function_ref<int64_t()> nextKey);

/// Whether axolotl looks for such modules in the module `path`: layers of the
/// text model, not of what encodes images.
bool mayHaveFunctions(const std::string &path);

/// The location of a child of the module at `loc`.
mlir::Location childLocation(mlir::Location loc, llvm::StringRef child);

} // namespace accel

#endif // ACCEL_PASSES_ADAPTERS_ADAPTERFUNCTIONS_H
