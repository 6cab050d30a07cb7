//===- Wrapped.h - Language models inside models of images ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Gemma3ForConditionalGeneration and its like: a language model
// (`text_config`), a tower that reads images (`vision_config`) and a projector
// between them. Trained on text: without pixel_values only the language model
// runs (Gemma3Model.forward of transformers 5.23), and the others' parameters
// are loaded, sharded and stored, but no function reads them. Some are planned
// with images too (Tower.h).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_WRAPPED_H
#define ACCEL_FRONTENDS_HUGGINGFACE_WRAPPED_H

#include "frontends/HuggingFace/Decoder.h"
#include "frontends/HuggingFace/Safetensors.h"

namespace accel::huggingface {

/// True for a model_type that `readWrapped` knows.
bool isWrapper(const std::string &modelType);
/// All of them, in alphabetical order.
std::vector<std::string> wrapperNames();

/// Reads a config.json of such a model; reports to `json`. `path` and
/// `diagnostics` are those of `json`.
std::optional<DecoderConfig> readWrapped(const std::string &modelType,
                                         ConfigReader &json,
                                         const std::string &path,
                                         DiagnosticEngine &diagnostics);

/// The modules of such a model beside its language model, as words:
/// "vision_tower and multi_modal_projector".
std::string besideText(const std::string &modelType);

/// Elements of the parameters that such a model has beside its language model.
int64_t numelBesideText(const ModelInfo &info);

/// Towers have an inner name in files that transformers before 5 wrote
/// ("vision_tower.vision_model."). Takes the one that `weights` have.
void nameTower(DecoderConfig &config, const Weights &weights);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_WRAPPED_H
