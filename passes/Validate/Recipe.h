//===- Recipe.h - What a measured run was -----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// From a row of a table to what has to be known to predict it: the shape, how
// the framework writes the model and shards it, dtypes, checkpointing, the
// target, and what its memory figure counts. What a row leaves open is filled
// with the framework's defaults, each with a note; what is not modelled is
// said with the reason.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_RECIPE_H
#define ACCEL_PASSES_VALIDATE_RECIPE_H

#include "passes/Executors/Executor.h"
#include "passes/Validate/RunTable.h"
#include "passes/Validate/ShapeModel.h"

namespace accel::validate {

enum class Framework {
  Torchtitan,
  KempnerForge,
  LlmFoundry,
  FmsFsdp,
  Torchtune,
  Transformers, // under accelerate, the Trainer or DeepSpeed
  Megatron,     // -LM, NeMo, Megatron-Bridge, -DeepSpeed
  Unknown
};
const char *toString(Framework framework);

/// What the column peak_mem_gib counts.
enum class MemoryKind { Reserved, Allocated };

struct Run {
  std::string family; // the letters of the id, else the framework
  Framework framework = Framework::Unknown;
  ModelShape shape;
  ModelRecipe recipe;
  ExecutorSettings settings;
  std::string target; // a shipped one
  MemoryKind memory = MemoryKind::Allocated;
  replay::AllocatorRules allocator; // as the framework's launcher sets it
  bool keepGathered = false; // units stay gathered from forward to backward
  bool activationOffload = false;
  bool optimizerInBackward = false; // each gradient is used and freed at once
  std::vector<std::string> assumptions;
  /// Why it is not modelled; "" where it is.
  std::string skipped;
};

Run interpret(const RunRow &row);

/// Sizes of a model by its published name ("llama3.1-8b", "meta-llama/
/// Llama-2-7b-hf"), or nothing.
std::optional<ModelShape> knownShape(const std::string &name);

/// The shipped target of a GPU as tables spell it; "" if there is none.
std::string targetOfGpu(const std::string &gpu);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_RECIPE_H
