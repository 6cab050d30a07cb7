//===- Quantized.h - quantization_config of a config.json -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_QUANTIZED_H
#define ACCEL_FRONTENDS_HUGGINGFACE_QUANTIZED_H

#include "frontends/Job/QuantizationConfig.h"

namespace accel::huggingface {

/// `quantization_config` of a config.json (transformers 5.23,
/// utils/quantization_config.py): bitsandbytes, gptq, awq and mxfp4. Nothing
/// where there is none; what is wrong or not modelled is reported, and `config`
/// stays empty then too.
void readQuantization(const std::string &text, const std::string &path,
                      std::optional<QuantizationConfig> &config,
                      DiagnosticEngine &engine);

/// The same for the config.json at `path`, or in the folder.
void readQuantizationFile(const std::string &path,
                          std::optional<QuantizationConfig> &config,
                          DiagnosticEngine &engine);

/// The same for what a model's name means (modelFolder), or a published model.
void readQuantizationNamed(const std::string &name,
                           std::optional<QuantizationConfig> &config,
                           DiagnosticEngine &engine);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_QUANTIZED_H
