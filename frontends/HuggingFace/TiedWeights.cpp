//===- TiedWeights.cpp - Do the files agree with a model's ties? ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/TiedWeights.h"

#include <cstring>
#include <fstream>

using namespace accel;
using namespace accel::huggingface;

namespace {

struct Place {
  const SafetensorsFile &file;
  const StoredTensor &tensor;
};

Place placeOf(const Weights &weights, const std::string &name) {
  const auto [file, tensor] = weights.tensors.at(name);
  const SafetensorsFile &in = weights.files[size_t(file)];
  return {in, in.tensors[size_t(tensor)]};
}

/// A file that cannot be read any more counts as equal: its reader says so.
bool sameBytes(const Place &a, const Place &b) {
  if (a.tensor.dtype != b.tensor.dtype || a.tensor.shape != b.tensor.shape)
    return false;
  constexpr size_t chunk = size_t(1) << 20;
  std::ifstream first(a.file.path, std::ios::binary),
      second(b.file.path, std::ios::binary);
  first.seekg(std::streamoff(a.tensor.begin));
  second.seekg(std::streamoff(b.tensor.begin));
  std::vector<char> left(chunk), right(chunk);
  for (uint64_t rest = a.tensor.end - a.tensor.begin; rest > 0;) {
    const size_t count = size_t(std::min<uint64_t>(rest, chunk));
    first.read(left.data(), std::streamsize(count));
    second.read(right.data(), std::streamsize(count));
    if (!first || !second)
      return true;
    if (std::memcmp(left.data(), right.data(), count) != 0)
      return false;
    rest -= count;
  }
  return true;
}

} // namespace

bool accel::huggingface::areHeldApart(const Weights &weights,
                                      const std::string &first,
                                      const std::string &second) {
  return weights.tensors.count(first) && weights.tensors.count(second) &&
         !sameBytes(placeOf(weights, first), placeOf(weights, second));
}

bool accel::huggingface::checkTiedWeights(const Weights &weights,
                                          const ModelInfo &model,
                                          const BaseModelWeights &held,
                                          const std::string &folder,
                                          DiagnosticEngine &diagnostics) {
  for (const ParameterInfo &parameter : model.parameters) {
    std::string first;
    std::vector<std::string> names = parameter.aliases;
    names.insert(names.begin(), parameter.fqn);
    for (const std::string &own : names) {
      const std::string name = held.name(own);
      if (!weights.tensors.count(name))
        continue;
      if (first.empty()) {
        first = name;
        continue;
      }
      if (!areHeldApart(weights, first, name))
        continue;
      diagnostics.error(
          notSupportedCode, folder,
          "the files hold '" + printable(first) + "' and '" + printable(name) +
              "' with other values, so that transformers does not tie them; "
              "such a model is not supported yet",
          "write \"tie_word_embeddings\": false in config.json, or save the "
          "model with one of the two");
      return false;
    }
  }
  return true;
}
