//===- ModelInfo.h - Modules and parameters of a model ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_MODELINFO_H
#define ACCEL_FRONTENDS_HUGGINGFACE_MODELINFO_H

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace accel::huggingface {

/// One module, in the order of `named_modules()`; the root has the empty FQN.
struct ModuleInfo {
  std::string fqn, className;
};

/// One parameter, in the order of `named_parameters()`.
struct ParameterInfo {
  std::string fqn;
  std::vector<int64_t> shape;
  plan::Initializer init;
  std::vector<std::string> aliases; // other FQNs of the same tensor
  std::vector<std::string> stored;  // as plan::Parameter::stored
  bool frozen = false;              // requires_grad is false from the start
  int64_t numel() const;
};

/// A tensor in fp32 that is part of checkpoints and is not trained; zeros where
/// there is no checkpoint.
struct BufferInfo {
  std::string fqn;
  std::vector<int64_t> shape;
};

/// The places of a model that Accelerate looks for; "" where it has none.
struct Anatomy {
  std::string base;                 // base_model_prefix
  std::string inputEmbedding;       // get_input_embeddings()
  std::string outputEmbedding;      // get_output_embeddings()
  std::vector<std::string> noSplit; // _no_split_modules
};

/// A tensor of the batch that the model reads.
struct ModelInput {
  std::string name;
  /// Integers are in [0, limit) (labels may be -100 too); 0: any number.
  int64_t limit = 0;
  /// Left out of the graph where the data have none, as transformers does.
  bool optional = false;
};

struct ModelInfo {
  std::vector<ModuleInfo> modules;
  std::vector<ParameterInfo> parameters;
  std::vector<BufferInfo> buffers; // each is an input of the graph
  Anatomy anatomy;
  /// Empty: input_ids and labels, the next tokens; else arrays of data.
  std::vector<ModelInput> inputs;
  int64_t numel() const; // of all parameters

  void module(std::string fqn, std::string className);
  void parameter(std::string fqn, std::vector<int64_t> shape,
                 const plan::Initializer &init,
                 std::vector<std::string> stored = {});
};

/// Initial values: normal with this standard deviation, ones, zeros.
plan::Initializer normalInit(double stddev);
plan::Initializer onesInit();
plan::Initializer zerosInit();
/// torch.nn.init.trunc_normal_ with its default bounds, -2 and 2.
plan::Initializer truncatedNormalInit(double stddev);
plan::Initializer uniformInit(double low, double high);
plan::Initializer constantInit(double value);
/// Whisper's table of positions.
plan::Initializer sinusoidsInit(double longest);
/// The same, but for an embedding's padding row, which is zero; -1: none.
plan::Initializer withZeroRow(plan::Initializer init, int64_t row);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_MODELINFO_H
