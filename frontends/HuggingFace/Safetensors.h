//===- Safetensors.h - Headers of safetensors files -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What a checkpoint holds, without loading it: the headers of model.safetensors
// or of the files that model.safetensors.index.json names. A header may hold
// anything; whatever is read here is checked against the file's size.
//
// The format: 8 bytes of header length (little endian), that many bytes of
// JSON, then the data, which the tensors cover without gap or overlap.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_SAFETENSORS_H
#define ACCEL_FRONTENDS_HUGGINGFACE_SAFETENSORS_H

#include "frontends/HuggingFace/LlamaConfig.h"
#include <functional>
#include <map>
#include <string_view>
#include <utility>

namespace accel::huggingface {

struct StoredTensor {
  std::string name;
  std::string dtype; // as the format spells it: "F32", "BF16", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0; // bytes from the start of the file
};

struct SafetensorsFile {
  std::string path;
  std::vector<StoredTensor> tensors; // by position in the file
  std::map<std::string, std::string> metadata;
};

/// Checks a header. `head` is the start of a file of `fileSize` bytes, with at
/// least the whole header in it; `path` is for messages. Reports the first
/// problem and returns nothing.
std::optional<SafetensorsFile>
parseSafetensorsHeader(std::string_view head, uint64_t fileSize,
                       const std::string &path, DiagnosticEngine &diagnostics);

/// Reads the header of the file at `path` and nothing else of it.
std::optional<SafetensorsFile>
readSafetensorsHeader(const std::string &path, DiagnosticEngine &diagnostics);

struct BaseModelWeights;

/// The weights of a Hugging Face folder.
struct Weights {
  std::vector<SafetensorsFile> files; // empty: the folder holds no weights
  /// File and position in it of each tensor by name.
  std::map<std::string, std::pair<int, int>> tensors;
};

/// Reads an index of transformers (model.safetensors.index.json): `open` is
/// called with each file that it names, in the order of their names, and
/// reports what is wrong with one; `holds` says whether an opened file has a
/// tensor. False, reported, where a file or tensor is not there.
bool readWeightIndex(
    const std::string &path,
    const std::function<bool(const std::string &file)> &open,
    const std::function<bool(const std::string &file,
                             const std::string &tensor)> &holds,
    DiagnosticEngine &diagnostics);

/// Finds model.safetensors, else model.safetensors.index.json with its files.
/// Weights that exist in another format only are an error.
std::optional<Weights> readWeights(const std::string &folder,
                                   DiagnosticEngine &diagnostics);

/// True where `weights` hold each parameter of `model` under one of its names,
/// or all tensors that transformers stores it as, in its shape, in a
/// floating-point dtype. Tensors that the model lacks are
/// named in a warning. As from_pretrained does, the base model alone, without
/// its prefix, is taken for the model's, and a head of which the weights have
/// nothing is left to its first values, with a note; `part` tells.
bool checkWeights(const Weights &weights, const ModelInfo &model,
                  const std::string &folder, DiagnosticEngine &diagnostics,
                  BaseModelWeights *part = nullptr);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_SAFETENSORS_H
