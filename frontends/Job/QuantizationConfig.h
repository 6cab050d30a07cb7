//===- QuantizationConfig.h - A quantised base model ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// How the weights of a frozen base are quantised: what `quantization_config` of
// a config.json, a script's BitsAndBytesConfig or --quantize says.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_QUANTIZATIONCONFIG_H
#define ACCEL_FRONTENDS_JOB_QUANTIZATIONCONFIG_H

#include "frontends/Accelerate/Setting.h"
#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/QuantizedWeights.h"

#include <optional>
#include <string>
#include <vector>

namespace accel {

struct QuantizationConfig {
  plan::Quantization values;
  /// bnb_4bit_compute_dtype: matmuls are computed in it where the activations
  /// have another 16-bit dtype.
  std::optional<plan::DType> compute;
  /// llm_int8_skip_modules or modules_to_not_convert: parts of module names
  /// that stay as they are. Nothing: transformers' own choice, the output
  /// embedding.
  std::optional<std::vector<std::string>> skipped;
  /// The checkpoint has the packed tensors already (a config.json says so);
  /// else each rank loads the wide weights and quantises them.
  bool prequantized = false;
  /// The packed weights are loaded as 16-bit ones:
  /// Mxfp4Config(dequantize=True).
  bool dequantizes = false;
  /// prepare_model_for_kbit_training was called: what is not quantised is fp32.
  bool preparedForTraining = false;

  /// FSDP2 is patched so that what it shards keeps its scales
  /// (axolotl/monkeypatch/fsdp2_qlora.py).
  bool keepsScalesUnderFsdp2 = false;

  Location at;
  std::string key; // of the file, or "--quantize"
};

/// Whether an element of GPTQ's or AWQ's weights may have so many bits
/// (GPTQConfig's post_init; AwqConfig asks for nothing).
bool hasBits(plan::WeightFormat format, int64_t bits);

/// Reads "nf4" or "nf4,double_quant,storage=bf16,compute=bf16" of --quantize.
/// What is not said is as BitsAndBytesConfig has it. Fills `problem` with one
/// sentence and returns nothing where the text is wrong.
std::optional<QuantizationConfig> parseQuantization(const std::string &text,
                                                    std::string &problem);

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_QUANTIZATIONCONFIG_H
