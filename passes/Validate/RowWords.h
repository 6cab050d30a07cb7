//===- RowWords.h - Words of a measured run's columns -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// People spell one technique in many ways ("ZeRO stage 3", "zero3", "ds_z3").
// Here columns become values; RunDescription and FineTuning see no spelling of
// these again. All texts are in lower case.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_ROWWORDS_H
#define ACCEL_PASSES_VALIDATE_ROWWORDS_H

#include "passes/Validate/RunDescription.h"

namespace accel::validate {

/// `word` stands in `text` with no letter or digit beside it.
bool hasWord(const std::string &text, const std::string &word);

/// `text` without names of files and addresses, whose words are no techniques
/// ("refs/a100_80gb_liger.csv").
std::string withoutPaths(const std::string &text);

/// Runs of letters and digits, in order.
std::vector<std::string> wordsOf(const std::string &text);

/// `text` with a blank for "_" and "-", "=" for ":", and no blanks about "=".
std::string plainSeparators(const std::string &text);

/// "no tp", "tp off", "tensor parallelism=false", where the name without "ism"
/// goes from `begin` to `end`.
bool isRefused(const std::string &text, size_t begin, size_t end);

/// "zero-3", "zero_3", "zero stage 3"; unless it must be `named`, "stage3" and
/// "ds_z3" too. One that is refused ("no zero-1") is 0.
std::optional<int> zeroStage(const std::string &text, bool named = false);

/// Who shards, as the columns `framework` and `sharding` say.
struct WrapperWords {
  /// Deepspeed, Fsdp1, Fsdp2 or Ddp; nothing where none is named.
  std::optional<FrameworkKind> executor;
  /// Of DeepSpeed; nothing where none is named.
  std::optional<int> zeroStage;
  std::string refused; // why it is not modelled, or ""
};
WrapperWords wrapperWords(const std::string &framework,
                          const std::string &sharding);

/// One way of dividing the ranks ("tp=8", "tp", "no tp").
struct AxisWords {
  bool named = false, refused = false;
  std::optional<int64_t> degree;
};

/// How ranks are divided, as the columns `framework` and `sharding` say beside
/// the columns tp, pp and cp.
struct MeshWords {
  AxisWords tensor, context, stages, experts, expertTensor;
  AxisWords chunks;   // of layers, of each stage
  AxisWords sequence; // parallelism of what tp does not split
  std::optional<bool> distributedOptimizer;
  std::optional<int> zeroStage;            // of the column `sharding`
  std::optional<int64_t> replicas, shards; // of groups of ranks
};
MeshWords meshWords(const std::string &framework, const std::string &sharding);

/// Gives `degree`, which is what `column` says, the one that `words` say. Why
/// that cannot be, or "".
std::string takeDegree(const AxisWords &words, const char *axis,
                       const char *column, std::optional<int64_t> &degree);

/// What is offloaded to the host.
struct OffloadWords {
  bool parameters = false, optimizer = false, activations = false;
  std::string refused; // why it is not modelled, or ""
};
/// Of a column, or of several with commas between them.
OffloadWords offloadWords(const std::string &text);

/// Words of a column that nothing reads.
struct UnreadWords {
  /// One that decides what runs: why the row is not modelled, or "".
  std::string refused;
  std::vector<std::string> others;
};
/// `column`: "framework", "sharding" or "precision".
UnreadWords unreadWords(const std::string &column, const std::string &text);

struct PrecisionWords {
  plan::DType compute = plan::DType::BF16;
  /// Weights have `compute` too, and nothing is cast.
  bool pure = false;
};
PrecisionWords precisionWords(const std::string &precision);

/// Whether layers are recomputed; nothing for words that say something else.
std::optional<bool> recomputesLayers(const std::string &checkpointing);

/// A loss that is not of single sequences ("dpo"); "" for supervised training.
std::string otherTraining(const std::string &framework);

/// A LoRA, as the column `framework` has it.
struct AdapterWords {
  bool adapter = false; // a LoRA or a form of it
  bool magnitude = false;
  int64_t rank = 0; // 0: not said
  std::optional<double> dropout;
  bool allLinear = false;
  std::vector<std::string> targets; // names of modules
  std::vector<std::string> saved;   // modules that are trained whole
  /// A technique that is not modelled; "" where there is none.
  std::string refused;
};
AdapterWords adapterWords(const std::string &framework);

/// The format of a quantised base as --quantize spells it; "" for none.
/// `columns`: framework, sharding and precision. "q-lora" alone is not a
/// format: `named` says whether one was given.
struct QuantizationWords {
  std::string format;
  bool named = false;
  std::string refused; // AWQ, HQQ, ...
};
QuantizationWords quantizationWords(const std::string &columns,
                                    const std::string &precision = "");

/// A base is said to be quantised, in whatever format ("quantized base").
bool namesQuantizedBase(const std::string &columns);

/// Of runtime/plan/Optimizers.h; "" for AdamW.
struct OptimizerWords {
  std::string name, refused;
};
OptimizerWords optimizerWords(const std::string &text);

/// When a source was written, as 202412 ("2024-12", "December 2024"); 0 if it
/// does not say.
int monthIn(const std::string &source);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_ROWWORDS_H
