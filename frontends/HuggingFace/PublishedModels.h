//===- PublishedModels.h - Models that ship by name -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_PUBLISHEDMODELS_H
#define ACCEL_FRONTENDS_HUGGINGFACE_PUBLISHEDMODELS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel::huggingface {

/// A model of the Hub whose config.json is part of the compiler
/// (data/published.json).
struct PublishedModel {
  std::string name;       // "Qwen/Qwen3-8B"
  std::string config;     // text of its config.json
  std::string modelType;  // of it: "qwen3"
  int64_t parameters = 0; // elements, tied ones once
};

/// The model of that name, without regard to case; the owner does not matter
/// where one is given ("unsloth/Llama-3.2-1B" is "meta-llama/Llama-3.2-1B"),
/// since copies of others keep the name. Nothing for a name that is not
/// published so: another version or size is another model.
std::optional<PublishedModel> publishedModel(const std::string &name);

/// All of them, each by each of its names, in the order of the data: models of
/// a family stand together.
std::vector<PublishedModel> publishedModels();

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_PUBLISHEDMODELS_H
