//===- JobFramework.h - The framework that a module names -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKS_JOBFRAMEWORK_H
#define ACCEL_PASSES_FRAMEWORKS_JOBFRAMEWORK_H

#include "passes/Frameworks/Framework.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel {

/// The framework of the module's sharding.job; accel-run where it names none.
const frameworks::Framework &frameworkOf(mlir::ModuleOp module);
/// Its releases; the newest that are modelled where the job names none.
frameworks::Versions versionsOf(mlir::ModuleOp module);

/// What the training script's libraries decide beside the framework.
struct ScriptTraits {
  std::string transformers = frameworks::Versions().transformers;
  /// Layers are checkpointed reentrantly: each layer's input is a leaf.
  bool reentrant = false;
  /// A trainer of preferences compares with frozen weights: "itself" without
  /// its adapter, or a "second" model; empty: with none.
  std::string reference = "";
  /// It scores completions before the forward that is trained; `scoresItself`:
  /// also by the trained weights.
  bool scoresFirst = false, scoresItself = false;
  /// Its loss is made of log-probabilities.
  bool logProbabilities = false;
  /// They are made by a log-softmax of all logits, in fp32, and a second model
  /// has the dtype of computation (LLaMA-Factory).
  bool wholeLogProbabilities = false;
  /// What generates completions keeps, on each device.
  int64_t generationBytes = 0;
  /// Autocast is all that casts: the framework that shards has no policy of
  /// dtypes (transformers' own sharding without fsdp_mixed_precision).
  bool autocastAlone = false;
  /// Each rank has the whole model on the host and moves a unit to the device
  /// to shard it (no fsdp_cpu_ram_efficient_loading).
  bool loadsWhole = false;
  /// It is loaded as shards (transformers' own sharding).
  bool loadsShards = false;
};
/// On a sharding.job: a dictionary of the above, where they are not the
/// defaults.
constexpr llvm::StringLiteral scriptAttr = "sharding.script";
ScriptTraits scriptOf(mlir::ModuleOp module);
void setScript(mlir::ModuleOp module, const ScriptTraits &script);

/// Modules are handed parameters in the dtype in which these are stored, and
/// torch.autocast casts the operands of matmuls: DDP and a single process, and
/// shards without a policy of dtypes.
bool castsByAutocast(mlir::ModuleOp module);

/// Whether the job asks for kernels that give the same bits each time.
bool isDeterministic(mlir::ModuleOp module);

/// How its models compute, with what the request "compile" asks for.
frameworks::Kernels kernelsOf(mlir::ModuleOp module);

/// The optimizer of its job; AdamW where the job names none, null for a name
/// that is not known.
const plan::OptimizerDescription *optimizerOf(mlir::ModuleOp module);

/// The type of a floating-point dtype; f32 for others.
mlir::Type floatType(mlir::MLIRContext *context, plan::DType dtype);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKS_JOBFRAMEWORK_H
