//===- TpPlans.h - Tensor parallelism of families ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_TPPLANS_H
#define ACCEL_PASSES_MESH_TPPLANS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace accel::mesh {

/// What is sharded of a linear layer; the names are transformers' styles.
enum class TpStyle {
  Colwise,             // output features, which stay sharded
  ColwiseGatherOutput, // output features, which are gathered
  Rowwise,             // input features
  RowwiseSplitInput,   // input features of an input that is whole
  EmbeddingRowwise,    // rows of a table: the vocabulary
  PackedColwise,       // output features of each of several layers in one
  ReplicatedWithGradAllreduce,
  MoeTpExperts,      // marks a module, no parameter
  GroupedGemm,       // experts, of which each rank has its own
  EpDispatchExperts, // marks a module, no parameter
};

struct TpEntry {
  /// Of a module or parameter: "layers.*.mlp.up_proj", behind any prefix within
  /// the base model.
  llvm::StringRef pattern;
  TpStyle style;
  /// Of a packed style: layers of one size that lie side by side; 0 where their
  /// sizes differ.
  int64_t layers = 0;
};

struct TpPlan {
  /// The class of the base model: "LlamaModel".
  llvm::StringRef baseClass;
  llvm::ArrayRef<TpEntry> entries;
  /// What takes the place of those where experts are sharded over ranks.
  llvm::ArrayRef<TpEntry> experts;
  /// transformers has this plan; else it was derived here.
  bool published;
  /// What others than transformers split besides (Megatron).
  llvm::ArrayRef<TpEntry> besides = {};
};

/// The plan of the family of one model's text, by its modules.
class ModelTpPlan {
public:
  /// `fqn` is kept by reference.
  void addModule(llvm::StringRef fqn, llvm::StringRef className);

  /// That of the first base model that has one; or null.
  const TpPlan *get() const { return plan; }

  /// The entry for the module or parameter `fqn`, the longest pattern that
  /// fits; or null. Layers are those of the base model: a tower beside it whose
  /// modules have the same names is whole, as transformers' plan of the
  /// composed model names the base model's layers alone.
  const TpEntry *find(llvm::ArrayRef<TpEntry> entries,
                      llvm::StringRef fqn) const;

private:
  const TpPlan *plan = nullptr;
  llvm::SmallVector<llvm::StringRef, 2> bases; // T5 has a stack in each half
};

llvm::StringRef stringifyTpStyle(TpStyle style);

} // namespace accel::mesh

#endif // ACCEL_PASSES_MESH_TPPLANS_H
